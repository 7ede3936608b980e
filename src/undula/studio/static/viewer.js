// The viewer: draws pictures that arrive over a WebSocket on a canvas. Zoom, pan and the divider are handled here
// only; filtering is done by the server.

const VIEWS = { divider: ["before", "after"], side: ["before", "after"] };
const MAX_SCALE = 64; // screen pixels per pixel of the picture

export default {
  template: `
    <div class="stage-canvas" :class="{grabbing: dragging, empty: !shown}" tabindex="0" role="application"
         aria-roledescription="image viewer" :aria-label="label"
         @wheel.prevent="wheel" @pointerdown="down" @pointermove="move" @pointerup="up" @pointercancel="up"
         @pointerleave="readout = ''" @dblclick="fit" @contextmenu.prevent>
      <canvas ref="canvas" aria-hidden="true"></canvas>
      <template v-if="shown && (view === 'divider' || view === 'side')">
        <span class="tag" style="left: 12px">{{ labels[0] }}</span>
        <span class="tag" :style="stacked ? {left: '12px', top: 'calc(50% + 12px)'} : {right: '12px'}">{{ labels[1] }}</span>
      </template>
      <span v-if="shown && warning" class="tag warning">{{ warning }}</span>
      <span v-if="shown && note" class="tag" style="left: 12px; top: 40px" data-testid="note">{{ note }}</span>
      <div v-if="shown && box" class="region" :style="box"><span data-testid="region">{{ regionText }}</span></div>
      <div v-if="shown && bar" class="scale-bar" data-testid="scale-bar" :style="{width: bar.width + 'px'}">{{ bar.text }}</div>
      <div v-if="shown && view === 'divider'" class="divider" role="slider" tabindex="0" aria-orientation="horizontal"
           aria-label="Divider between before and after" :aria-valuenow="Math.round(split * 100)" aria-valuemin="0"
           aria-valuemax="100" :style="{left: split * 100 + '%'}" @pointerdown.stop="grab" @keydown="nudge"><i></i></div>
      <div v-if="shown && view === 'side'" class="middle" :class="{stacked}"></div>
      <div v-if="readout" class="readout">{{ readout }}</div>
      <div class="zoom" v-if="shown">{{ zoomed }}</div>
      <div v-if="denied" class="denied" role="alert">The Studio was started anew, with another token. Open the address that it
        printed: this browser has kept the chain, and offers to restore it there.</div>
      <div v-if="dropping" class="drop"><span>Drop images, volumes or videos here</span></div>
      <div class="uploads" role="status" aria-live="polite">
        <div v-for="upload in uploads" :key="upload.id" :class="{failed: upload.error}">
          <b>{{ upload.name }}</b><span>{{ upload.error || (upload.share < 1 ? Math.round(100 * upload.share) + ' %' : 'decoding …') }}</span>
          <button v-if="upload.error" @click="forget(upload)" aria-label="Dismiss">×</button>
          <i v-else :style="{width: 100 * upload.share + '%'}"></i>
        </div>
      </div>
      <input ref="files" type="file" multiple hidden aria-hidden="true" data-testid="file-input" @change="picked">
      <input ref="batch" type="file" multiple hidden aria-hidden="true" data-testid="batch-input" @change="pickedBatch">
      <input ref="json" type="file" accept=".json,application/json" hidden aria-hidden="true" data-testid="json-input"
             @change="pickedJson">
    </div>`,

  props: { path: String, label: String },

  data() {
    return {
      shown: false, view: "divider", split: 0.5, dragging: false, dropping: false, readout: "", zoomed: "",
      uploads: [], camera: false, note: "", warning: "", labels: ["Before", "After"], bar: null, box: null, regionText: "",
      tool: "pan", stacked: false, letters: true, denied: false,
    };
  },

  mounted() {
    this.layers = {}; // name → canvas or bitmap
    this.sizes = {}; // name → size of the picture; previews may be smaller
    this.painted = { id: 0, version: 0, number: 0, at: 0 };
    this.cameraFrames = 0;
    this.times = [];
    this.at = { scale: 1, x: 0, y: 0, fit: true };
    this.fingers = new Map();
    this.holding = null;
    this.region = null;
    this.queue = Promise.resolve();
    this.context = this.$refs.canvas.getContext("2d", { alpha: false });
    // Sizes and styles are read here only: reading them for every picture would force a layout each time.
    this.resized = new ResizeObserver(() => { this.measure(); this.draw(); });
    this.resized.observe(this.$el);
    this.dark = new MutationObserver(() => { this.measure(); this.draw(); });
    this.dark.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.listeners = [
      [window, "dragover", (e) => { e.preventDefault(); this.dropping = !!e.dataTransfer?.types?.includes("Files"); }],
      [window, "dragleave", (e) => { if (!e.relatedTarget) this.dropping = false; }],
      [window, "drop", (e) => { e.preventDefault(); this.dropping = false; this.send(e.dataTransfer.files); }],
      [window, "keydown", (e) => this.key(e)],
    ];
    for (const [target, name, listener] of this.listeners) target.addEventListener(name, listener);
    window.undulaStudio = this;
    document.documentElement.lang = "en";
    // Quasar makes the scrolled part of a list focusable, which only options may be.
    this.lists = new MutationObserver(() => {
      for (const part of document.querySelectorAll("[role=listbox] > [tabindex]")) part.removeAttribute("tabindex");
    });
    this.lists.observe(document.body, { childList: true });
    document.querySelector(".q-drawer--left")?.setAttribute("aria-label", "Filters");
    document.querySelector(".q-drawer--right")?.setAttribute("aria-label", "Figures");
    this.measure();
    this.connect();
    this.letters = this.kept("letters") !== "off";
    this.$emit("kept", { letters: this.letters, theme: this.kept("theme"), chains: this.kept("chains") });
  },

  unmounted() {
    this.closed = true;
    this.stopCamera();
    this.socket?.close();
    this.resized.disconnect();
    this.dark.disconnect();
    this.lists.disconnect();
    for (const [target, name, listener] of this.listeners) target.removeEventListener(name, listener);
  },

  methods: {
    // --- pictures ------------------------------------------------------------------------------------

    connect() {
      const scheme = location.protocol === "https:" ? "wss" : "ws";
      this.socket = new WebSocket(`${scheme}://${location.host}/studio/pictures/${this.path}`);
      this.socket.binaryType = "arraybuffer";
      this.sentScale = 0; // the scale that the server knows
      this.socket.onmessage = (message) => { this.queue = this.queue.then(() => this.receive(message.data)).catch(console.error); };
      this.socket.onclose = () => { if (!this.closed) setTimeout(() => this.reconnect(), 1000); };
    },

    // After a restart the server knows neither the session nor, with another token, this browser.
    async reconnect() {
      const status = await fetch(`/studio/state/${this.path}`).then((answer) => answer.status, () => 0);
      if (status === 404) location.reload();
      else if (status === 403) {
        this.denied = true;
        document.getElementById("popup").style.display = "none"; // NiceGUI's, which says that it reconnects
      } else this.connect();
    },

    // --- what the browser keeps ----------------------------------------------------------------------

    keep(name, value) {
      try {
        if (value === null) localStorage.removeItem(`undula-studio-${name}`);
        else localStorage.setItem(`undula-studio-${name}`, value);
      } catch { /* the browser keeps nothing */ }
    },

    kept(name) {
      try { return localStorage.getItem(`undula-studio-${name}`); } catch { return null; }
    },

    useLetters(letters) {
      this.letters = letters;
      this.keep("letters", letters ? null : "off");
    },

    async receive(data) {
      const length = new DataView(data).getUint32(0, true);
      const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
      let offset = 4 + length;
      if (head.text !== undefined) return this.tell(head);
      if (!head.layers.length) { // the server could not render it
        if (head.input !== this.painted.input) this.clear();
        return;
      }
      if (head.input !== this.painted.input) this.layers = {};
      for (const layer of head.layers) {
        await this.fill(layer, new Uint8Array(data, offset, layer.size));
        offset += layer.size;
      }
      const size = head.layers.at(-1), known = this.painted.layers?.at(-1);
      const resized = size.width !== known?.width || size.height !== known?.height; // another plane of a volume
      const first = !this.shown || head.input !== this.painted.input || (resized && head.view === this.view);
      if (head.input !== this.painted.input) this.region = null;
      this.view = head.view;
      this.note = head.note;
      this.warning = head.warning;
      this.labels = head.labels;
      this.shown = true;
      this.painted = { ...head, at: performance.now() };
      if (first) this.at.fit = true;
      this.draw(true);
      this.times.push(performance.now());
      if (this.times.length > 60) this.times.shift();
      this.socket.send(JSON.stringify({ ack: head.id }));
      if (this.region && head.exact) this.socket.send(JSON.stringify({ region: this.region }));
      this.waiting?.();
    },

    // Shows the values of a place or a region, which only the server knows exactly.
    tell(head) {
      if (head.probe) {
        this.probing = false;
        if (this.spot) this.readout = `${head.probe.join(", ")}:  ${head.text}`;
        if (this.spot && this.spot.join() !== head.probe.join()) this.probe();
      } else if (this.region) this.regionText = head.text;
    },

    probe() {
      this.probing = true;
      this.socket.send(JSON.stringify({ probe: this.spot }));
    },

    // Exact layers are drawn into canvases, to read their pixels; previews stay bitmaps.
    async fill(layer, bytes) {
      const old = this.layers[layer.name];
      this.sizes[layer.name] = { width: layer.width, height: layer.height };
      if (layer.format === "jpeg") {
        this.layers[layer.name] = await createImageBitmap(new Blob([bytes], { type: "image/jpeg" }));
        old?.close?.();
        return;
      }
      let canvas = old;
      if (!canvas?.getContext || canvas.width !== layer.width || canvas.height !== layer.height) {
        old?.close?.();
        canvas = this.canvasOf(layer.width, layer.height);
        this.layers[layer.name] = canvas;
      }
      const context = canvas.getContext("2d", { willReadFrequently: true });
      if (layer.format === "png") {
        const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
        context.clearRect(0, 0, layer.width, layer.height);
        context.drawImage(bitmap, 0, 0);
        bitmap.close();
        return;
      }
      const image = new ImageData(layer.width, layer.height);
      const count = layer.width * layer.height;
      if (layer.channels === 4) image.data.set(bytes);
      else {
        const out = new Uint32Array(image.data.buffer); // little-endian
        if (layer.channels === 1) for (let i = 0; i < count; i++) out[i] = 0xff000000 | (bytes[i] * 0x10101);
        else for (let i = 0, k = 0; i < count; i++, k += 3) out[i] = 0xff000000 | (bytes[k + 2] << 16) | (bytes[k + 1] << 8) | bytes[k];
      }
      context.putImageData(image, 0, 0);
    },

    canvasOf(width, height) {
      const canvas = document.createElement("canvas");
      canvas.width = width;
      canvas.height = height;
      return canvas;
    },

    // The RGBA bytes of a layer.
    pixels(name, x, y, width, height) {
      let layer = this.layers[name];
      if (!layer.getContext) {
        const canvas = this.canvasOf(layer.width, layer.height);
        canvas.getContext("2d", { willReadFrequently: true }).drawImage(layer, 0, 0);
        layer = canvas;
      }
      return layer.getContext("2d").getImageData(x ?? 0, y ?? 0, width ?? layer.width, height ?? layer.height).data;
    },

    clear() {
      this.layers = {};
      this.shown = false;
      this.painted.input = null;
      this.draw();
    },

    fps() {
      if (this.times.length < 2 || performance.now() - this.times.at(-1) > 1000) return 0;
      return (1000 * (this.times.length - 1)) / (this.times.at(-1) - this.times[0]);
    },

    // --- drawing -------------------------------------------------------------------------------------

    names() { return VIEWS[this.view] || [this.view === "synthesis" ? "after" : this.view]; },

    measure() {
      this.width = this.$el.clientWidth;
      this.height = this.$el.clientHeight;
      this.ground = getComputedStyle(this.$el).getPropertyValue("--stage").trim() || "#15191d";
    },

    // Draws with low quality while something changes, and with high quality afterwards.
    draw(quick = false) {
      clearTimeout(this.refining);
      if (quick && this.at.scale < 1) this.refining = setTimeout(() => this.draw(), 200);
      this.quality = quick ? "low" : "high";
      const canvas = this.$refs.canvas, context = this.context;
      if (!canvas) return;
      const dpr = window.devicePixelRatio || 1;
      const width = Math.round(this.width * dpr), height = Math.round(this.height * dpr);
      if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.fillStyle = this.ground;
      context.fillRect(0, 0, width, height);
      const layers = this.names().map((name) => this.layers[name]);
      if (!this.shown || layers.some((layer) => !layer)) return;
      const size = this.sizes[this.names()[0]], pane = this.pane(width, height);
      this.stacked = pane.top > 0;
      if (this.at.fit) {
        const scale = Math.min(pane.width / size.width, pane.height / size.height);
        this.at = { scale: Math.min(scale, 8 * dpr), x: size.width / 2, y: size.height / 2, fit: true };
      }
      if (this.socket?.readyState === 1 && Math.abs(this.at.scale / this.sentScale - 1) > 0.01) {
        this.sentScale = this.at.scale;
        this.socket.send(JSON.stringify({ scale: this.sentScale }));
      }
      this.zoomed = Math.round((100 * this.at.scale) / dpr) + " %";
      this.measureBar(dpr);
      this.placeRegion(dpr, pane.width, pane.height);
      if (this.view === "side") {
        this.paint(layers[0], size, { ...pane, left: 0, top: 0 });
        this.paint(layers[1], size, pane);
      } else if (this.view === "divider") {
        const cut = Math.round(this.split * width);
        this.paint(layers[0], size, pane, 0, cut);
        this.paint(layers[1], size, pane, cut, width);
      } else this.paint(layers[0], size, pane);
    },

    // The size of a pane, and where the second one begins: beside the first one, or below it in portrait.
    pane(width, height) {
      const pane = { width, height, left: 0, top: 0 };
      if (this.view !== "side") return pane;
      const [length, at] = height > width ? ["height", "top"] : ["width", "left"];
      const half = Math.floor(pane[length] / 2);
      return { ...pane, [length]: half, [at]: pane[length] - half };
    },

    // The scale bar has a round length in millimetres, of 60 to 150 pixels.
    measureBar(dpr) {
      const spacing = this.painted.spacing;
      if (!spacing) { this.bar = null; return; }
      const pixels = this.at.scale / dpr / spacing[1]; // for one millimetre
      const power = 10 ** Math.floor(Math.log10(150 / pixels));
      const length = power * [5, 2, 1].find((n) => n * power * pixels <= 150);
      this.bar = { width: length * pixels, text: length >= 10 ? `${length / 10} cm` : `${+length.toPrecision(1)} mm` };
    },

    placeRegion(dpr, pane, height) {
      if (!this.region) { this.box = null; return; }
      const { scale, x, y } = this.at, [left, top, right, bottom] = this.region;
      const at = (n, middle, size) => (((n - middle) * scale + size / 2) / dpr);
      const px = [left, right].map((n) => at(n, x, pane)).sort((a, b) => a - b);
      const py = [top, bottom].map((n) => at(n, y, height)).sort((a, b) => a - b);
      this.box = { left: px[0] + "px", top: py[0] + "px", width: px[1] - px[0] + "px", height: py[1] - py[0] + "px" };
    },

    setTool(tool) {
      this.tool = tool;
      if (tool !== "region") { this.region = null; this.regionText = ""; this.draw(); }
    },

    // Draws a layer into a pane, clipped to its columns from `begin` to `end`.
    paint(layer, size, pane, begin = 0, end = pane.width) {
      const context = this.context, { scale, x, y } = this.at;
      context.save();
      context.beginPath();
      context.rect(pane.left + begin, pane.top, end - begin, pane.height);
      context.clip();
      context.imageSmoothingEnabled = scale < 1;
      context.imageSmoothingQuality = this.quality;
      context.translate(pane.left + pane.width / 2, pane.top + pane.height / 2);
      context.scale(scale, scale);
      context.drawImage(layer, -x, -y, size.width, size.height);
      context.restore();
    },

    // --- zoom, pan, divider --------------------------------------------------------------------------

    // Converts screen coordinates to those of the picture (x, y), and to the offset from the centre of the pane.
    place(clientX, clientY) {
      const box = this.$el.getBoundingClientRect(), dpr = window.devicePixelRatio || 1;
      const pane = this.pane(box.width * dpr, box.height * dpr);
      let px = (clientX - box.left) * dpr, py = (clientY - box.top) * dpr;
      if (px >= pane.left && py >= pane.top) { px -= pane.left; py -= pane.top; }
      px -= pane.width / 2;
      py -= pane.height / 2;
      return { x: this.at.x + px / this.at.scale, y: this.at.y + py / this.at.scale, px, py };
    },

    zoom(factor, clientX, clientY) {
      if (!this.shown) return;
      const spot = clientX === undefined ? { ...this.at, px: 0, py: 0 } : this.place(clientX, clientY);
      const size = this.sizes[this.names()[0]], dpr = window.devicePixelRatio || 1;
      const least = Math.min(0.5, 100 / Math.max(size.width, size.height)) * dpr;
      const scale = Math.min(MAX_SCALE * dpr, Math.max(least, this.at.scale * factor));
      this.at = { scale, x: spot.x - spot.px / scale, y: spot.y - spot.py / scale, fit: false };
      this.draw(true);
    },

    fit() { this.at.fit = true; this.draw(); },

    actual() {
      if (this.shown) { this.at = { ...this.at, scale: window.devicePixelRatio || 1, fit: false }; this.draw(); }
    },

    wheel(e) { this.zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015)), e.clientX, e.clientY); },

    down(e) {
      if (e.button > 2 || !this.shown || e.target.closest("button")) return;
      this.gesture = e.button === 2 ? "window" : e.shiftKey ? "region" : this.tool;
      if (this.gesture === "region" && this.holding === null) {
        const { x, y } = this.place(e.clientX, e.clientY);
        this.region = [Math.round(x), Math.round(y), Math.round(x), Math.round(y)];
        this.regionText = "";
      }
      this.fingers.set(e.pointerId, [e.clientX, e.clientY]);
      try { this.$el.setPointerCapture(e.pointerId); } catch { /* the pointer is gone already */ }
      this.dragging = true;
    },

    grab(e) { this.holding = e.pointerId; this.down(e); },

    // Drags to the right widen the window, drags down raise its centre.
    shiftWindow(right, down) {
      const [a, b] = this.windowShift || [0, 0];
      if (!this.windowShift) requestAnimationFrame(() => {
        this.socket.send(JSON.stringify({ window: this.windowShift }));
        this.windowShift = null;
      });
      this.windowShift = [a + right / this.width, b + down / this.height];
    },

    nudge(e) {
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[e.key];
      if (!step || e.altKey || e.ctrlKey || e.metaKey) return;
      e.preventDefault();
      e.stopPropagation();
      this.split = Math.min(1, Math.max(0, this.split + step));
      this.draw();
    },

    move(e) {
      this.look(e);
      const last = this.fingers.get(e.pointerId);
      if (!last) return;
      if (this.holding === e.pointerId) {
        const box = this.$el.getBoundingClientRect();
        this.split = Math.min(1, Math.max(0, (e.clientX - box.left) / box.width));
        this.draw(true);
        return;
      }
      const dpr = window.devicePixelRatio || 1;
      if (this.gesture === "window" && this.fingers.size === 1) this.shiftWindow(e.clientX - last[0], e.clientY - last[1]);
      else if (this.gesture === "region" && this.fingers.size === 1) {
        const { x, y } = this.place(e.clientX, e.clientY);
        this.region = [this.region[0], this.region[1], Math.round(x), Math.round(y)];
        this.draw(true);
      } else if (this.fingers.size === 2) {
        const other = [...this.fingers].find(([id]) => id !== e.pointerId)[1];
        const before = Math.hypot(last[0] - other[0], last[1] - other[1]);
        const now = Math.hypot(e.clientX - other[0], e.clientY - other[1]);
        if (before > 0) this.zoom(now / before, (e.clientX + other[0]) / 2, (e.clientY + other[1]) / 2);
      } else {
        const { scale, x, y } = this.at;
        this.at = { scale, x: x - ((e.clientX - last[0]) * dpr) / scale, y: y - ((e.clientY - last[1]) * dpr) / scale, fit: false };
        this.draw(true);
      }
      this.fingers.set(e.pointerId, [e.clientX, e.clientY]);
    },

    up(e) {
      this.fingers.delete(e.pointerId);
      if (this.holding === e.pointerId) this.holding = null;
      this.dragging = this.fingers.size > 0;
      if (this.gesture === "region" && this.region) {
        if (this.region[0] === this.region[2] || this.region[1] === this.region[3]) this.region = null;
        else this.socket.send(JSON.stringify({ region: this.region }));
        this.draw();
      }
      this.gesture = null;
    },

    look(e) {
      const names = this.names(), layer = this.layers[names[0]];
      this.spot = null;
      if (!this.shown || (!layer?.getContext && !this.painted.probe) || e.pointerType === "touch") { this.readout = ""; return; }
      const { x, y } = this.place(e.clientX, e.clientY), px = Math.floor(x), py = Math.floor(y);
      const size = this.sizes[names[0]];
      if (px < 0 || py < 0 || px >= size.width || py >= size.height) { this.readout = ""; return; }
      if (this.painted.probe) {
        this.spot = [px, py];
        if (!this.probing) this.probe();
        return;
      }
      const value = (name) => {
        const [r, g, b] = this.pixels(name, px, py, 1, 1);
        return r === g && g === b ? `${r}` : `${r} ${g} ${b}`;
      };
      this.readout = `${px}, ${py}:  ${names.filter((name) => this.layers[name]).map(value).join("  →  ")}`;
    },

    // --- keys ----------------------------------------------------------------------------------------

    // Moves through the items of a menu, which Quasar leaves to the Tab key.
    moveInMenu(e, items) {
      const at = items.indexOf(document.activeElement), last = items.length - 1;
      const next = { ArrowDown: at < last ? at + 1 : 0, ArrowUp: at > 0 ? at - 1 : last, Home: 0, End: last }[e.key];
      if (next === undefined) return;
      e.preventDefault();
      items[next]?.focus();
    },

    key(e) {
      const target = e.target, menu = target.closest?.("[role=menu]");
      if (menu) return this.moveInMenu(e, [...menu.querySelectorAll("[role=menuitem]")]);
      const slider = target.closest?.("[role=slider], [type=range]");
      if (!slider && target.closest?.("input, textarea, [contenteditable], .q-select, .q-menu, .q-dialog")) return;
      if (e.altKey) return; // a shortcut of the browser
      if (!this.letters && e.key.length === 1 && e.key !== " " && !e.ctrlKey && !e.metaKey) return;
      const name = (e.ctrlKey || e.metaKey ? "ctrl+" : "") + (e.shiftKey && e.key.length > 1 ? "shift+" : "") + e.key.toLowerCase();
      const local = {
        "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit(),
        9: () => this.actual(), w: () => this.$emit("tool", { tool: "window" }), r: () => this.$emit("tool", { tool: "region" }), f: () => this.fullscreen(), o: () => this.pick(),
      }[name];
      const remote = ["1", "2", "3", "4", "5", "6", " ", "arrowleft", "arrowright", "home", "end", "l", "d", "?", "e", "c",
        "h", "ctrl+z", "ctrl+y", "ctrl+s", "x", "a", "b"];
      if (slider && (name.startsWith("arrow") || name === "home" || name === "end")) return;
      if (target.closest?.("button, [role=button], [role=switch], [role=tab]") && name === " ") return;
      const redo = name === "ctrl+z" && e.shiftKey ? "ctrl+y" : name;
      if (local) { e.preventDefault(); local(); }
      else if (remote.includes(redo)) { e.preventDefault(); this.$emit("shortcut", { key: redo }); }
    },

    fullscreen() {
      if (document.fullscreenElement) document.exitFullscreen();
      else document.querySelector(".stage").requestFullscreen();
    },

    // --- files ---------------------------------------------------------------------------------------

    pick() { this.$refs.files.click(); },
    pickJson() { this.$refs.json.click(); },
    pickBatch() { this.$refs.batch.click(); },
    picked(e) { this.send(e.target.files); e.target.value = ""; },

    async pickedBatch(e) {
      const files = [...e.target.files];
      e.target.value = "";
      for (const file of files) await this.upload(file, "&batch=true");
    },

    async pickedJson(e) {
      const [file] = e.target.files;
      e.target.value = "";
      if (file) await this.sendPipeline(file);
    },

    async sendPipeline(file) {
      const name = file.name, size = Math.ceil(file.size / 1000);
      if (file.size <= 200000) this.$emit("pipeline", { name, text: await file.text() });
      else this.$emit("pipeline", { name, error: `it has ${size} kB; pipelines of up to 200 kB can be loaded` });
    },

    async send(files) {
      for (const file of [...files]) {
        if (/\.json$/i.test(file.name)) await this.sendPipeline(file);
        else await this.upload(file);
      }
    },

    upload(file, more = "") {
      this.uploads.push({ id: Math.random(), name: file.name, share: 0, error: "" });
      const upload = this.uploads.at(-1);
      return new Promise((done) => {
        const request = new XMLHttpRequest();
        request.open("POST", `/studio/upload/${this.path}?name=${encodeURIComponent(file.name)}${more}`);
        request.upload.onprogress = (e) => { upload.share = e.total ? e.loaded / e.total : 0; };
        const finish = (error) => {
          if (error) upload.error = error;
          else this.forget(upload);
          done();
        };
        request.onload = () => {
          let answer = {};
          try { answer = JSON.parse(request.responseText); } catch { /* not an answer of the Studio */ }
          finish(request.status === 200 ? "" : answer.error || `the server refused the upload (${request.status})`);
        };
        request.onerror = () => finish("the connection was lost; the file may be larger than the server allows");
        request.send(file);
      });
    },

    forget(upload) { this.uploads = this.uploads.filter((other) => other.id !== upload.id); },

    // --- camera --------------------------------------------------------------------------------------

    async startCamera() {
      if (this.camera) return;
      try {
        if (!navigator.mediaDevices) throw new Error("browsers allow cameras only for pages of this machine, or over https");
        this.stream = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: 640 }, height: { ideal: 480 } }, audio: false });
      } catch (error) {
        this.$emit("camera", { error: error.message || String(error) });
        return;
      }
      this.camera = true;
      this.$emit("camera", { error: "" });
      const video = document.createElement("video");
      video.srcObject = this.stream;
      video.muted = true;
      video.playsInline = true;
      await video.play();
      const canvas = document.createElement("canvas");
      const context = canvas.getContext("2d", { willReadFrequently: true });
      while (this.camera) {
        const { videoWidth: width, videoHeight: height } = video;
        if (width && this.socket.readyState === 1) {
          canvas.width = width;
          canvas.height = height;
          context.drawImage(video, 0, 0);
          const pixels = context.getImageData(0, 0, width, height).data;
          const head = new TextEncoder().encode(JSON.stringify({ width, height }));
          const message = new Uint8Array(4 + head.length + pixels.length);
          new DataView(message.buffer).setUint32(0, head.length, true);
          message.set(head, 4);
          message.set(pixels, 4 + head.length);
          this.sent = pixels;
          this.cameraFrames += 1;
          const answered = new Promise((go) => { this.waiting = go; setTimeout(go, 500); });
          this.socket.send(message);
          await answered;
        }
        await new Promise((go) => (video.requestVideoFrameCallback ? video.requestVideoFrameCallback(go) : setTimeout(go, 30)));
      }
      video.srcObject = null;
    },

    stopCamera() {
      this.camera = false;
      for (const track of this.stream?.getTracks() ?? []) track.stop();
      this.stream = null;
    },
  },
};
