/**
 * Lets the terminal renderer live under `style-src 'self'`.
 *
 * The policy forbids the text of `<style>` elements and `style="…"` attributes; it does not
 * forbid constructed style sheets, nor properties set one by one. The renderer uses the
 * forbidden ways in two places, which are led to the allowed ones here. Both changes are
 * confined to elements that scripts create.
 */

/** Prepare `document`; call it once, before a terminal is made. */
export function keepToPolicy(): void {
  const create = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) =>
    name === "style" ? sheetBehind(create("template")) : create(name, options)
  ) as typeof document.createElement;
  HTMLSpanElement.prototype.setAttribute = function (name: string, value: string): void {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
}

/** Make the text of an element, which shows nothing itself, the rules of a constructed sheet. */
function sheetBehind(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  let text = "";
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set: (value: string) => {
      text = value;
      sheet.replaceSync(value);
    },
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((item) => item !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
