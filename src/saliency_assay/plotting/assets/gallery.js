'use strict';
// A gallery's filters, and its dialog, which shows a map enlarged, with its image, both overlaid, predictions and scores.
for (const gallery of document.querySelectorAll('.gallery')) {
  const {images, explained, predictions, scores} = JSON.parse(gallery.querySelector('script').textContent);
  const items = [...gallery.querySelectorAll('.item')], filters = gallery.querySelector('.filters');
  const boxes = [...filters.querySelectorAll('input')], dialog = gallery.querySelector('dialog');
  const models = [...items[0].querySelectorAll('ul')].map(list => list.getAttribute('aria-label'));
  const part = selector => dialog.querySelector(selector);
  const placeOf = element => [...element.parentElement.children].indexOf(element);
  const buttonAt = (item, model, method) => item.querySelectorAll('ul')[model].children[method].firstElementChild;

  const filter = () => {
    const selected = name => filters.querySelector(`.by-${name}`).selectedOptions[0];
    const ofClass = selected('class'), prediction = selected('prediction');
    items.forEach((item, place) => {
      const predicted = predictions[prediction.dataset.key]?.[place];
      item.hidden = ofClass.value && images[place].classes[ofClass.dataset.key] !== ofClass.value
        || prediction.value && (!predicted || predicted[1] !== (prediction.value === 'right'));
      item.querySelectorAll('li').forEach(cell => {
        cell.hidden = !boxes[placeOf(cell)].checked;
      });
    });
    const shown = items.filter(item => !item.hidden).length, checked = boxes.filter(box => box.checked).length;
    filters.querySelector('output').textContent =
      `${shown} of ${items.length} images, ${checked} of ${boxes.length} methods`;
  };
  // Under a selected metric: scores below the maps, and images with the worst scores of a method first, at first of the
  // method with the best mean.
  const metric = filters.querySelector('.by-score'), sorted = filters.querySelector('.of-method');
  const rankWords = (own, row) => `rank ${own[1]} of ${row.filter(Boolean).length}`;
  const sort = event => {
    if (!metric) return;
    const score = scores[metric.value], own = (place, method) => score.values[place][method];
    sorted.parentElement.hidden = !score;
    if (score && event?.target === metric) {
      const means = boxes.map((_, method) => items.map((_, place) => own(place, method)).filter(Boolean))
        .map(scored => scored.reduce((sum, entry) => sum + entry[2], 0) / scored.length);
      sorted.value = means.indexOf(Math.max(...means.filter(mean => !isNaN(mean))));
    }
    const value = item => own(items.indexOf(item), sorted.value)?.[2] ?? Infinity;
    dialog.before(...(score ? [...items].sort((a, b) => value(a) - value(b) || 0) : items));
    items.forEach((item, place) => item.querySelectorAll('ul').forEach((list, number) => [...list.children].forEach(cell => {
      const shown = score && (!score.model || score.model === models[number]), entry = shown && own(place, placeOf(cell));
      cell.querySelector('.score').textContent = !shown ? '' : entry
        ? `${entry[0]} (${rankWords(entry, score.values[place])})` : 'no score';
    })));
  };
  filters.onchange = event => {
    filter();
    sort(event);
  };
  filters.querySelectorAll('button').forEach(button => button.onclick = () => {
    boxes.forEach(box => box.checked = Boolean(button.value));
    filter();
  });
  filters.onchange(null);  // a browser may restore the filters of an earlier visit

  const fill = (table, rows) => {
    const cell = text => Object.assign(document.createElement('td'), {textContent: text});
    table.tBodies[0].replaceChildren(...rows.map(texts => {
      const row = document.createElement('tr');
      row.append(...texts.map(cell));
      return row;
    }));
    table.hidden = rows.length === 0;
  };
  let current, model, method;  // the button of the enlarged map and its place
  const show = button => {
    current = button;
    const item = button.closest('.item'), place = items.indexOf(item);
    method = placeOf(button.closest('li'));
    model = placeOf(button.closest('ul').parentElement);
    const image = item.querySelector('.picture'), map = button.firstElementChild;
    const overlay = image.cloneNode(true);
    overlay.append(...map.cloneNode(true).querySelectorAll('img'));
    part('.image').replaceChildren(image.cloneNode(true));
    part('.map').replaceChildren(map.cloneNode(true));
    part('.overlay').replaceChildren(overlay);
    part('.views').style.cssText = item.style.cssText;  // the outline
    part('h3').textContent = `${button.lastChild.textContent}, ${models[model]}, image ${images[place].id}`;
    const classes = Object.entries(images[place].classes);
    const named = classes.map(([label, name]) => classes.length > 1 ? `${name} (${label})` : name);
    part('.class').textContent = `True class: ${named.join(', ')}. Explained class: ${explained[models[model]][place]}.`;
    fill(part('.predictions'), models.filter(name => predictions[name]?.[place]).map(name => {
      const [predicted, right, probability] = predictions[name][place];
      return [name, predicted, right ? 'right' : 'wrong', probability];
    }));
    const scored = scores.filter(({values}) => values[place].some(Boolean));
    fill(part('.scores'), scored.map(({label, direction, values}) => {
      const ranks = values[place].filter(Boolean).map(([, rank]) => rank), own = values[place][method];
      if (!own) return [label, 'no score', direction, ''];
      const tied = ranks.filter(rank => rank === own[1]).length > 1 ? ' (tied)' : '';
      return [label, own[0], direction, `${own[1]} of ${ranks.length}${tied}`];
    }));
    const seeds = Math.max(...scored.map(score => score.seeds));
    part('.note').textContent = seeds > 1
      ? `Scores are means over ${seeds} training seeds. Map and predictions are of the first seed.` : '';
    if (dialog.open) return;
    dialog.showModal();
    part('.close').focus();  // not the attribute autofocus, which Chromium blocks in the report's frame
  };
  gallery.querySelectorAll('li button').forEach(button => button.onclick = () => show(button));

  const move = (along, step) => {
    const choices = along === 'method' ? [...current.closest('.item').querySelectorAll('li:not([hidden]) button')]
      : [...gallery.querySelectorAll('.item:not([hidden])')].map(item => buttonAt(item, model, method));
    show(choices.at((choices.indexOf(current) + Number(step)) % choices.length));
  };
  const keys = {ArrowLeft: ['method', -1], ArrowRight: ['method', 1], ArrowUp: ['image', -1], ArrowDown: ['image', 1]};
  dialog.onkeydown = event => {
    if (!keys[event.key] || event.target.type === 'range') return;
    event.preventDefault();
    move(...keys[event.key]);
  };
  dialog.querySelectorAll('[data-along]').forEach(button => {
    button.onclick = () => move(button.dataset.along, button.value);
  });
  part('.close').onclick = () => dialog.close();
  dialog.onclose = () => current.focus();
  const slider = part('input');
  slider.oninput = () => {
    dialog.style.setProperty('--opacity', `${slider.value}%`);
    part('output').textContent = `${slider.value} %`;
  };
  slider.oninput();
}
