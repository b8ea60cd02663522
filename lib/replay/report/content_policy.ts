/**
 * The page's content security policy: it runs these scripts, whatever text got into the
 * page, and loads nothing.
 */
export async function contentPolicy(
  scripts: readonly string[],
): Promise<string> {
  const hashes = await Promise.all(scripts.map(async (script) => {
    const hash = await crypto.subtle.digest(
      "SHA-256",
      new TextEncoder().encode(script),
    );
    return `'sha256-${new Uint8Array(hash).toBase64()}'`;
  }));
  return [
    "default-src 'none'",
    `script-src ${hashes.join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}
