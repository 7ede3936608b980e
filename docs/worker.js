// A page that was opened from a disk may not start workers, and searching needs one: a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      const scope = frame.contentWindow;
      const load = (source) =>
        new Promise((done, failed) => {
          const script = scope.document.createElement("script");
          script.src = source;
          script.onload = done;
          script.onerror = failed;
          scope.document.documentElement.append(script);
        });
      scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      scope.importScripts = (...sources) => Promise.all(sources.map(load));
      this.scope = scope;
      this.ready = load(url);
    }
    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data })));
    }
  };
}
