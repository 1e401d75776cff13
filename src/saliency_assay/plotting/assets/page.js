'use strict';
for (const table of document.querySelectorAll('table:not([data-plain])')) {
  const value = cell => cell.dataset.value ?? cell.textContent.trim();
  const quoted = text => /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  const title = table.caption ? table.caption.textContent.trim() : document.title;
  table.querySelectorAll('thead th[aria-sort]').forEach(head => head.firstElementChild.onclick = () => {
    const up = head.getAttribute('aria-sort') !== 'ascending';
    for (const other of table.querySelectorAll('th[aria-sort]')) other.setAttribute('aria-sort', 'none');
    head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const key = row => {
      const text = value(row.cells[head.cellIndex]), number = Number(text);
      return text === '' || text === '–' ? null : Number.isNaN(number) ? text : number;
    };
    for (const body of table.tBodies) {
      const rows = [...body.rows].map(row => [key(row), row]);
      rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null)
        : (typeof a === typeof b ? (a < b ? -1 : a > b) : typeof a === 'number' ? -1 : 1) * (up ? 1 : -1));
      body.append(...rows.map(([, row]) => row));
    }
  });
  const button = document.createElement('button');
  button.className = 'csv';
  button.textContent = 'Download as CSV';
  button.setAttribute('aria-label', 'Download as CSV: ' + title);
  button.onclick = () => {
    const lines = [...table.querySelectorAll('thead tr:not(.groups), tbody tr')].map(
      row => [...row.cells].map(cell => quoted(cell.dataset.csv ?? value(cell))).join(','));
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['\ufeff' + lines.join('\r\n') + '\r\n'], {type: 'text/csv'}));
    link.download = title.replace(/[^\p{L}\p{N}]+/gu, '_').slice(0, 80) + '.csv';
    link.click();
  };
  (table.closest('.scroll') ?? table).after(button);
}
for (const field of document.querySelectorAll('input[data-filter]')) field.oninput = () => {
  const text = field.value.trim().toLowerCase();
  for (const row of document.querySelectorAll(field.dataset.filter)) row.hidden = !row.textContent.toLowerCase().includes(text);
};
const embedded = window.parent !== window;
document.documentElement.classList.toggle('embedded', embedded);
for (const link of document.querySelectorAll('a[data-page], a[data-list]')) link.onclick = event => {
  if (!embedded) return;
  event.preventDefault();
  window.parent.postMessage({...link.dataset}, '*');
};
// A link to a folded part unfolds it; prints show all parts. Chromium blocks links within a page that has no URL of its own.
const unfold = parts => parts.forEach(part => part.open = true);
const foldedParts = (of = document) => of.querySelectorAll('details:not(.vega-embed *, .filter)');
for (const link of document.querySelectorAll('a[href^="#"]:not([data-list])')) link.onclick = event => {
  event.preventDefault();
  const part = document.querySelector(link.getAttribute('href'));
  unfold(foldedParts(part));
  part.querySelector('summary')?.focus({preventScroll: true});
  part.scrollIntoView();
};
for (const button of document.querySelectorAll('button.copy')) button.onclick = () => {
  getSelection().selectAllChildren(button.nextElementSibling);
  document.execCommand('copy');  // works in pages opened from disk, too
};
for (const button of document.querySelectorAll('button.unfold')) button.onclick = () => unfold(foldedParts());
window.addEventListener('beforeprint', () => unfold(foldedParts()));
for (const figure of document.querySelectorAll('button.figure')) figure.onclick = () => figure.classList.toggle('enlarged');
// Charts: the image next to a specification is replaced by what Vega-Lite renders from it.
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const theme = dark ? {theme: 'dark', config: {background: 'transparent', axis: {gridColor: '#3a3f46'}, text: {color: '#e6e6e6'}}} : {};
// On a phone the panels of a chart are below each other, and as wide as the page.
const AXIS = 95, LETTER = 6.5, SYMBOL = 30;
const fitted = chart => {
  const width = document.body.clientWidth - AXIS;
  if (width > 480) return chart;
  const oneColumn = unit => {
    const {legend, scale} = unit.encoding?.color ?? {};
    if (!legend) return;
    const longest = Math.max(...scale.domain.map(name => name.length));
    const shared = {orient: 'bottom', offset: chart.concat ? 18 : 50, columns: Math.max(1, Math.floor((width + AXIS) / (LETTER * longest + SYMBOL)))};
    for (const channel of Object.values(unit.encoding)) if (channel.legend) Object.assign(channel.legend, shared);
  };
  const panels = chart.concat ?? [chart];
  if (chart.concat) chart.columns = 1;
  for (const panel of panels) {
    panel.width = Math.min(panel.width, width);
    [panel, ...panel.layer].forEach(oneColumn);
  }
  return chart;
};
const LIGHTER = {'#332288': '#b3a8f5', '#882255': '#ec9cc0', '#000000': '#e6e6e6'};  // the dark colors of palette.py
const actions = {export: true, source: false, compiled: false, editor: false};
for (const chart of typeof vegaEmbed === 'undefined' ? [] : document.querySelectorAll('script.chart')) {
  const place = document.createElement('div'), image = chart.nextElementSibling;
  chart.after(place);
  const specification = dark ? chart.textContent.replace(/#332288|#882255|#000000/g, color => LIGHTER[color]) : chart.textContent;
  vegaEmbed(place, fitted(JSON.parse(specification)), {renderer: 'svg', actions, ...theme}).then(() => image.remove());
}
