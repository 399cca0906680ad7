/** What all panels of the timeline share: one time axis, one cursor, zooming and panning. */

import { axisLabel, niceStep } from "./axis";
import { palette } from "./colours";
import type { Store } from "./state";
import type { Trace } from "./trace";

export const LEFT = 72;
export const RIGHT = 12;

export interface Panel {
  draw(): void;
  resize(width: number): void;
}

/** A canvas over the time axis. */
export abstract class CanvasPanel implements Panel {
  protected readonly canvas = document.createElement("canvas");
  protected readonly context: CanvasRenderingContext2D;
  protected width = 0;

  constructor(
    parent: HTMLElement,
    protected readonly trace: Trace,
    protected readonly store: Store,
    protected readonly height: number,
  ) {
    const context = this.canvas.getContext("2d");
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
    this.canvas.setAttribute("role", "img");
    parent.append(this.canvas);
    listen(this.canvas, store, (x) => this.timeAt(x));
  }

  resize(width: number): void {
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  protected x(time: number): number {
    const [from, until] = this.store.span();
    return LEFT + ((time - from) / (until - from)) * (this.width - LEFT - RIGHT);
  }

  protected timeAt(x: number): number {
    const [from, until] = this.store.span();
    return from + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (until - from);
  }

  draw(): void {
    if (this.width < 60) return;
    const { context, store } = this;
    const colours = palette();
    const [from, until] = store.span();
    context.fillStyle = colours.background;
    context.fillRect(0, 0, this.width, this.height);
    this.paint(from, until);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    const step = niceStep((until - from) / Math.max(2, this.width / 110));
    for (let time = Math.ceil(from / step) * step; time <= until; time += step) {
      const x = Math.round(this.x(time)) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(x, this.height - 18);
      context.lineTo(x, this.height - 14);
      context.stroke();
      context.fillStyle = colours.faint;
      const label = axisLabel(time, step);
      const half = context.measureText(label).width / 2;
      context.fillText(label, Math.min(x, this.width - half - 2), this.height - 3);
    }
    if (store.cursor !== null && store.cursor >= from && store.cursor <= until) {
      const x = Math.round(this.x(store.cursor)) + 0.5;
      context.strokeStyle = colours.faint;
      context.setLineDash([2, 3]);
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, this.height - 18);
      context.stroke();
      context.setLineDash([]);
    }
  }

  /** Nothing that follows is drawn beyond the axes, until `context.restore()`. */
  protected clip(): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(LEFT, 0, this.width - LEFT - RIGHT, this.height - 20);
    this.context.clip();
  }

  protected label(text: string, y: number): void {
    this.context.fillStyle = palette().faint;
    this.context.font = "11px system-ui, sans-serif";
    this.context.textAlign = "right";
    this.context.fillText(text, LEFT - 6, y);
  }

  protected abstract paint(from: number, until: number): void;
}

/** Zooming with the wheel, panning with the pointer, and the cursor. */
export function listen(element: HTMLElement, store: Store, timeAt: (x: number) => number): void {
  let drag: number | null = null;
  element.addEventListener(
    "wheel",
    (event) => {
      // With alt a page that is longer than the window scrolls.
      if (event.altKey) return;
      event.preventDefault();
      const time = timeAt(event.offsetX);
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        store.pan((timeAt(1) - timeAt(0)) * (event.deltaX || event.deltaY));
      } else store.zoomAbout(time, Math.exp(event.deltaY * 0.0015));
    },
    { passive: false },
  );
  element.addEventListener("pointerdown", (event) => {
    drag = event.offsetX;
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (drag !== null) {
      store.pan(timeAt(drag) - timeAt(event.offsetX));
      drag = event.offsetX;
    } else store.point(timeAt(event.offsetX));
  });
  element.addEventListener("pointerup", () => {
    drag = null;
  });
  element.addEventListener("pointerleave", () => store.point(null));
}
