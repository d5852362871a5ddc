// Draws the page's Mermaid diagrams in place of their source. The page loads Mermaid only if it has one.
const sources = document.querySelectorAll(".highlight-mermaid pre");
if (sources.length > 0) {
  const library = document.createElement("script");
  library.src = new URL("mermaid.js", document.currentScript.src);
  library.onload = async () => {
    const dark = getComputedStyle(document.body).colorScheme.includes("dark");
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
    const nodes = Array.from(sources, (source) => {
      const diagram = document.createElement("div");
      diagram.textContent = source.textContent;
      source.closest(".highlight-mermaid").replaceWith(diagram);
      return diagram;
    });
    await mermaid.run({ nodes });
  };
  document.head.append(library);
}
