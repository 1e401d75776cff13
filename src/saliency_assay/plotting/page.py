"""The shell of every HTML page: style and script in the file itself, no network, readable at a phone's width.

The script sorts tables by the buttons in their heads and hands them out as CSV; without it pages lose nothing else.
"""

from html import escape

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; margin: 1.2rem; color: #1b1b1b; background: #fff;
  overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .2rem 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; border-top: 2px solid #1b1b1b; padding-top: .6rem; }
h3 { font-size: 1.02rem; margin: 1.6rem 0 .4rem; }
p, ul, ol, dl { max-width: 46rem; }
li { margin: .3rem 0; }
dt { font-weight: 600; margin-top: .5rem; }
a { color: #00548a; }
a:focus-visible, button:focus-visible, .scroll:focus-visible { outline: 3px solid #E69F00; outline-offset: 2px; }
code, pre { font-size: .88em; font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
pre { background: #f5f5f5; padding: .8rem; white-space: pre-wrap; }
table { border-collapse: collapse; font-size: .93rem; }
.scroll { overflow-x: auto; max-width: 100%; margin: .8rem 0 1.6rem; overflow-wrap: normal; }
.tall { max-height: 80vh; overflow-y: auto; border-bottom: 2px solid #444; }
.tall thead th { position: sticky; top: 0; background: #fff; }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #444; vertical-align: bottom; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
th button { font: inherit; font-weight: 600; border: 0; padding: 0; background: none; color: inherit; cursor: pointer;
  text-align: inherit; }
th[aria-sort] button::after { content: " \\2195"; color: #767676; }
th[aria-sort=ascending] button::after { content: " \\2191"; color: #1b1b1b; }
th[aria-sort=descending] button::after { content: " \\2193"; color: #1b1b1b; }
button.csv { font-size: .85rem; margin: 0 0 .3rem; padding: .1rem .6rem; border: 1px solid #767676;
  border-radius: 3px; background: #fff; color: #1b1b1b; cursor: pointer; }
img { max-width: 100%; height: auto; }
img.wide { min-width: 40rem; max-width: none; width: 100%; }
.note { color: #555; font-size: .9rem; }
table.heat td { border: 1px solid #fff; min-width: 6.2rem; max-width: 11rem; line-height: 1.25; }
table.heat th[scope=row] { position: sticky; left: 0; background: #fff; min-width: 6.5rem; max-width: 11rem; }
table.heat thead th { max-width: 9rem; }
table.heat small { display: block; color: #333; font-size: .8rem; }
table.heat b { font-size: 1.1rem; }
table.heat tfoot th, table.heat tfoot td { border-top: 2px solid #444; background: #fff; }
.meter { display: block; width: 5.4rem; height: .5rem; border: 1px solid #555; background: #fff; }
.meter i { display: block; height: 100%; background: #E69F00; }
@media (max-width: 40rem) {
  body { margin: .7rem; }
  .embedded body { margin-top: 2.4rem; }
  th, td { padding: .3rem .45rem; }
  h1 { font-size: 1.35rem; }
  table.cards thead { display: none; }
  table.cards, table.cards caption, table.cards tbody, table.cards tr, table.cards td { display: block; }
  table.cards tr { border-bottom: 2px solid #444; padding: .4rem 0; }
  table.cards td { border: 0; padding: .1rem 0; }
  table.cards td::before { content: attr(data-label) ": "; font-weight: 600; }
}
@media print { button.csv { display: none; } .scroll { overflow: visible; } }
"""

SCRIPT = """
'use strict';
for (const table of document.querySelectorAll('table')) {
  const value = cell => cell.dataset.value ?? cell.textContent.trim();
  const quoted = text => /[",\\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  const title = table.caption ? table.caption.textContent.trim() : document.title;
  table.querySelectorAll('thead th[aria-sort]').forEach(head => head.firstElementChild.onclick = () => {
    const up = head.getAttribute('aria-sort') !== 'ascending';
    for (const other of table.querySelectorAll('th[aria-sort]')) other.setAttribute('aria-sort', 'none');
    head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const key = row => {
      const text = value(row.cells[head.cellIndex]), number = Number(text);
      return text === '' || text === '–' ? null : Number.isNaN(number) ? text : number;
    };
    const rows = [...table.tBodies[0].rows].map(row => [key(row), row]);
    rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null)
      : (typeof a === typeof b ? (a < b ? -1 : a > b) : typeof a === 'number' ? -1 : 1) * (up ? 1 : -1));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  });
  const button = document.createElement('button');
  button.className = 'csv';
  button.textContent = 'Download as CSV';
  button.setAttribute('aria-label', 'Download as CSV: ' + title);
  button.onclick = () => {
    const lines = [...table.querySelectorAll('thead tr, tbody tr')].map(
      row => [...row.cells].map(cell => quoted(cell.dataset.csv ?? value(cell))).join(','));
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['\\ufeff' + lines.join('\\r\\n') + '\\r\\n'], {type: 'text/csv'}));
    link.download = title.replace(/[^\\p{L}\\p{N}]+/gu, '_').slice(0, 80) + '.csv';
    link.click();
  };
  (table.closest('.scroll') ?? table).before(button);
}
const embedded = window.parent !== window;
document.documentElement.classList.toggle('embedded', embedded);
for (const link of document.querySelectorAll('a[data-page], a[data-list]')) link.onclick = event => {
  if (!embedded) return;
  event.preventDefault();
  window.parent.postMessage({...link.dataset}, '*');
};
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""


def page(body: str, *, title: str) -> str:
    """A whole page around ``body``, which is HTML; ``title`` is text.

    Links with ``data-page`` lead to a category of the report where the page is embedded in it, else to their ``href``.
    """
    return PAGE.format(title=escape(title), body=body, style=STYLE, script=SCRIPT)
