// A worker in a hidden frame, for pages that are opened from disk: browsers start no real one there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      this.ready = new Promise((loaded) => (frame.onload = loaded));
      window.addEventListener("message", (event) => {
        if (event.source !== inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      const prelude = `
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = done;
          document.body.append(script);
        })));`;
      inside.document.open();
      inside.document.write(`<body><script>${prelude}<\/script><script src="${url}"><\/script></body>`);
      inside.document.close();
      this.inside = inside;
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data, source: window })));
    }
    terminate() {}
  };
}

// The theme matches each word of a query as a prefix: without this, "choose a metric" finds every word with an initial a.
const STOP_WORDS = new Set(
  "a an and are be can do does for from how i if in is it my of on or that the this to was what when where which why with"
    .split(" "),
);
const SEARCH_QUERY = 2; // the theme's type of message
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message) {
  if (message.type === SEARCH_QUERY) {
    const words = message.data.split(/\s+/).filter((word) => !STOP_WORDS.has(word.toLowerCase().replace(/\W/g, "")));
    message = { ...message, data: words.join(" ") || message.data };
  }
  postMessage.call(this, message);
};
