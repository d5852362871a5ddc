"""How Assay looks: the stylesheet, components and charts of the console, of reports and of pictures."""
