// Checks that markup is well formed, as far as our reports make use of it.

/** HTML elements that have no end. */
const VOID = new Set(["meta", "input", "br", "img", "link"]);
const ENTITY = /&(?!(?:amp|lt|gt|quot|#39|#\d+|#x[0-9a-f]+);)/;
const TAG = /^<(\/?)([A-Za-z][\w:-]*)((?:\s+[\w:-]+(?:="[^"<]*")?)*)\s*(\/?)>/;

/**
 * Throws unless every element that begins ends, in order, with attributes in double
 * quotes; in XML every attribute has a value and no element lacks an end.
 */
export function checkMarkup(markup: string, language: "xml" | "html"): void {
  const open: string[] = [];
  let at = 0;
  const fail = (why: string): never => {
    throw new Error(`${why} at ${at}: ${markup.slice(at, at + 120)}`);
  };
  while (at < markup.length) {
    const next = markup.indexOf("<", at);
    const text = markup.slice(at, next < 0 ? markup.length : next);
    if (ENTITY.test(text)) fail("bare ampersand");
    if (next < 0) break;
    at = next;
    const doctype = /^<!DOCTYPE html>|^<\?xml[^>]*\?>/.exec(
      markup.slice(at, at + 200),
    );
    if (doctype) {
      at += doctype[0].length;
      continue;
    }
    const tag = TAG.exec(markup.slice(at, at + 100_000)) ?? fail("no tag");
    const [whole, ending, name, attributes, closed] = tag as unknown as [
      string,
      string,
      string,
      string,
      string,
    ];
    if (ENTITY.test(attributes)) fail("bare ampersand in an attribute");
    const names = [...attributes.matchAll(/\s([\w:-]+)(="[^"]*")?/g)];
    if (new Set(names.map(([, key]) => key)).size !== names.length) {
      fail("attribute twice");
    }
    if (language === "xml" && names.some(([, , value]) => !value)) {
      fail("attribute without value");
    }
    at += whole.length;
    if (ending) {
      if (open.pop() !== name) {
        fail(`"${name}" ends, but another element is open`);
      }
    } else if (!closed && !(language === "html" && VOID.has(name))) {
      open.push(name);
      if (language === "html" && (name === "script" || name === "style")) {
        const end = markup.indexOf(`</${name}`, at);
        if (end < 0) fail(`"${name}" does not end`);
        at = end;
      }
    }
  }
  if (open.length > 0) fail(`"${open.at(-1)}" does not end`);
}

/** A page without what its scripts and styles hold. */
export function withoutScripts(html: string): string {
  return html.replace(/(<(script|style)[^>]*>)[\s\S]*?<\/\2>/g, "$1</$2>");
}
