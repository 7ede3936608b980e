// A slider: that of the browser, so that the element with the focus has the role, the name and the value.

const PAUSE = 50; // milliseconds between the values that are reported while it moves

export default {
  template: `
    <input type="range" class="slider" :min="min" :max="max" :step="step" :aria-valuetext="text" @input="moved"
           @change="released" @keydown="pressed = true" @keyup="lifted" @blur="left" @pointerdown="hold(true)"
           @pointerup="hold(false)" @pointercancel="hold(false)">`,

  props: { min: Number, max: Number, step: Number, value: Number },

  data() { return { text: "" }; },

  mounted() { this.show(this.value); },

  watch: {
    value(value) { this.show(value); },
    max() { this.$nextTick(() => this.show(this.value)); },
  },

  methods: {
    // Shows a value, unless the visitor moves the slider.
    show(value) {
      if (this.held) return;
      this.$el.value = value;
      this.text = String(+value.toPrecision(6));
    },

    moved() {
      this.changed = true;
      this.text = String(+(+this.$el.value).toPrecision(6));
      this.waiting ??= setTimeout(() => this.report(), PAUSE);
    },

    // The value of the element is rounded to a step, so it is reported only if the visitor has changed it.
    report(settled = false) {
      clearTimeout(this.waiting);
      this.waiting = null;
      if (!this.changed) return;
      this.changed = !settled;
      this.$emit("move", { value: +this.$el.value, settled });
    },

    // Keys that are held repeat, and are one gesture.
    released() { if (!this.pressed) this.report(true); },

    lifted() {
      if (this.pressed) this.report(true);
      this.pressed = false;
    },

    left() {
      this.lifted();
      if (this.held) this.hold(false);
    },

    hold(held) {
      this.held = held;
      this.$emit("hold", { held });
    },
  },
};
