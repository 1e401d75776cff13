'use strict';
// Arranges Snakemake's report as pages: the overview opens first, each category opens as one page with all its figures,
// tables and captions, and links connect the pages. It uses the report's variables `results` and `categories`, its views
// (`app`) and its copy of Vega-Lite; `reader` has the layout of a page and the order of results.
(function start() {
  if (typeof app === 'undefined' || !app) {
    requestAnimationFrame(start);
    return;
  }
  const narrow = () => window.innerWidth < 700;
  const text = string => {
    const element = document.createElement('div');
    element.textContent = string;
    return element.innerHTML;
  };
  const attribute = string => text(string).replaceAll('"', '&quot;');
  const place = path => (reader.order.indexOf(path) + reader.order.length + 1) % (reader.order.length + 1);
  const members = category => Object.values(categories[category]).flat().sort((a, b) => place(a) - place(b));
  const ordered = Object.keys(categories).sort((a, b) => place(members(a)[0]) - place(members(b)[0]));

  const parsed = (uri, type) => {
    const bytes = Uint8Array.from(atob(uri.slice(uri.indexOf(',') + 1)), letter => letter.charCodeAt(0));
    return new DOMParser().parseFromString(new TextDecoder().decode(bytes), type);
  };
  // The body of a result that is an HTML page, without its scripts but with the data that scripts read.
  const bodyOf = uri => {
    const page = parsed(uri, 'text/html');
    page.querySelectorAll('script:not([type="application/json"])').forEach(script => script.remove());
    return page.body.innerHTML;
  };
  // A figure: the image, and the specification that page.js renders in its place, if the SVG has one.
  const figureOf = (result, title) => {
    const kind = result.mime_type === 'image/png' ? 'wide' : 'plot';
    const image = `<button type="button" class="figure" title="Enlarge or reduce"><img class="${kind}" src="${result.data_uri}" alt="${attribute(title)}"></button>`;
    const metadata = result.mime_type === 'image/svg+xml'
      && parsed(result.data_uri, 'image/svg+xml').querySelector('metadata')?.textContent;
    const isChart = metadata && metadata.startsWith('{');
    const specification = isChart ? metadata.replaceAll('<', '\\u003c') : '';
    const content = isChart ? `<script type="application/json" class="chart">${specification}<\/script>${image}` : image;
    return `<div class="scroll" tabindex="0" role="region" aria-label="${attribute(title)}">${content}</div>`;
  };
  // The report's copies of Vega, Vega-Lite and vega-embed.
  const libraries = [...document.scripts].filter(script => /global\.vega|require\('vega'\)/.test(script.text.slice(0, 500)))
    .map(script => `<script>${script.text}<\/script>`).join('');
  // The first line of a label is the title; a second line is the beginning of the caption.
  const linesOf = path => (Object.values(results[path].labels ?? {})[0] ?? results[path].name).split('\n');
  const titleOf = path => linesOf(path)[0];
  // Content and caption of a result, with its title for all but the first. Only the first OPEN parts are unfolded.
  const OPEN = 3;
  const isTable = path => results[path].mime_type === 'text/html' && !bodyOf(results[path].data_uri).includes('<img');
  const sectionOf = (path, number, alone) => {
    const result = results[path], title = titleOf(path);
    const body = result.mime_type === 'text/html' ? bodyOf(result.data_uri) : figureOf(result, title);
    const lines = linesOf(path).slice(1).map(line => `<p>${text(line)}</p>`);
    const note = `<div class="note">${lines.join('')}${result.caption ?? ''}</div>`;
    const content = `${body}${note}`;
    if (alone || number === 0 && result.mime_type === 'text/html') return `<section id="part${number}">${content}</section>`;
    const heading = `<summary><h2 class="part">${text(title)}</h2></summary>`;
    return `<section id="part${number}"><details${number < OPEN ? ' open' : ''}>${heading}${content}</details></section>`;
  };
  const pageOf = category => {
    const [first, ...others] = members(category), alone = others.length === 0;
    const paths = [first, ...others.filter(path => !isTable(path)), ...others.filter(isTable)];
    const contents = paths.slice(1).map((path, i) => `<li><a href="#part${i + 1}">${text(titleOf(path))}</a></li>`);
    const sections = paths.map((path, i) => sectionOf(path, i, alone));
    if (!sections[0].includes('<h1')) sections[0] = `<h1>${text(category)}</h1>${sections[0]}`;
    if (!alone) {
      const files = `<p class="note"><button class="unfold">Unfold all</button>
        <a href="#" data-list="${attribute(category)}">Separate files</a> with the code and parameters that produced them</p>`;
      const list = `<ul class="contents">${contents.join('')}</ul>`;
      sections.splice(1, 0, `<nav aria-label="contents"><h2>Figures and tables</h2>${list}${files}</nav>`);
    }
    const body = sections.join('\n');
    return reader.shell.replace('<!--body-->', () => body + (body.includes('class="chart"') ? libraries : ''));
  };

  const urls = {};
  let current;
  const open = (category, anchor) => {
    urls[category] ??= URL.createObjectURL(new Blob([pageOf(category)], {type: 'text/html'}));
    app.setView({content: 'html', contentPath: urls[category] + (anchor ? `#${anchor}` : ''), hideNavbar: narrow()});
    current = category;
  };
  // The frame is created asynchronously for each page.
  new MutationObserver(() => {
    const frame = document.querySelector('iframe');
    if (frame && frame.src.startsWith(urls[current])) frame.title = current;
  }).observe(document.body, {childList: true, subtree: true});
  const showCategory = app.showCategory.bind(app);
  app.showCategory = category => {
    showCategory(category);
    open(category);
  };
  Menu.prototype.getCategoryMenumitems = function () {
    const items = ordered.map(name => this.getMenuItem(name, 'folder', () => app.showCategory(name)));
    return [e(ListHeading, {key: 'Results', text: 'Results'}), ...items];
  };
  window.addEventListener('message', event => {
    const {page, anchor, list} = event.data ?? {};
    if (typeof page === 'string' && Object.hasOwn(categories, page)) open(page, anchor);
    if (typeof list === 'string' && Object.hasOwn(categories, list)) showCategory(list);
  });
  document.title = reader.title;
  open(ordered[0]);
})();
