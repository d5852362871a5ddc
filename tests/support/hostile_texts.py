"""500 texts that attack whoever shows them: scripts, markup, templates, links, direction, invisible characters, formulas."""

from itertools import islice, product

_ATTACKS = (
    "<script>window.ran = 1</script>",
    "<img src=x onerror=window.ran=1>",
    "<svg onload=window.ran=1>",
    "<svg/onload=alert(1)>",
    "<iframe src=https://attacker.example/f></iframe>",
    "<object data=https://attacker.example/o></object>",
    "<embed src=https://attacker.example/e>",
    "<link rel=stylesheet href=https://attacker.example/s.css>",
    "<style>@import url(https://attacker.example/i.css); * { display: none }</style>",
    "<base href=https://attacker.example/>",
    "<meta http-equiv=refresh content='0;url=https://attacker.example/'>",
    "<form action=https://attacker.example/><button>x</button></form>",
    "<a href='javascript:window.ran=1'>click</a>",
    "<body onload=window.ran=1>",
    "<input autofocus onfocus=window.ran=1>",
    "<details open ontoggle=window.ran=1>",
    "<video><source onerror=window.ran=1></video>",
    "<marquee onstart=window.ran=1>",
    "<math><mi xlink:href='javascript:window.ran=1'>x</mi></math>",
    "<template><script>window.ran=1</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=window.ran=1>'>",
    "<!--><img src=x onerror=window.ran=1>-->",
    "<![CDATA[<script>window.ran=1</script>]]>",
    "<?xml version='1.0'?><script>window.ran=1</script>",
    "&lt;script&gt;window.ran=1&lt;/script&gt;",
    "&#60;script&#62;window.ran=1&#60;/script&#62;",
    "\\u003cscript\\u003ewindow.ran=1\\u003c/script\\u003e",
    "javascript:window.ran=1",
    "data:text/html,<script>window.ran=1</script>",
    "vbscript:msgbox(1)",
    "![x](https://attacker.example/i.png)",
    "[x](javascript:window.ran=1)",
    "![x][1]\n\n[1]: https://attacker.example/r.png",
    "<https://attacker.example/auto>",
    "```html\n<script>window.ran=1</script>\n```",
    "| a | b |\n|---|---|\n| ![](//attacker.example/t) | c |",
    "{{ 7 * 7 }}",
    "{% raw %}{{ config }}{% endraw %}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "${7 * 7}",
    "<%= 7 * 7 %>",
    "#{7 * 7}",
    "{{constructor.constructor('window.ran=1')()}}",
    "%0d%0aSet-Cookie: a=b",
    "%3Cscript%3Ewindow.ran=1%3C/script%3E",
    "\u202ereversed\u202c",
    "\u2066isolated\u2069\u200f",
    "zero\u200bwidth\u200d\ufeff",
    "tag\U000e0041\U000e0042 end",
    "bell\x07 escape\x1b[31m",
    "line\u2028separator\u2029end",
    "\x00nul",
    "one\r\ntwo\rthree\n\n\n",
    "\ttab\x0b\x0c",
    "a\u0300\u0301\u0302\u0303 combined",
    "\ud83d\ude00 and 👩‍👩‍👧",
    '=HYPERLINK("https://attacker.example")',
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1+1)*cmd",
    "\t=1+1",
    "'; DROP TABLE answers; --",
    "__proto__",
    "constructor",
    "</textarea></title></script>",
    '" onmouseover=window.ran=1 x="',
    "' autofocus onfocus=window.ran=1 x='",
)
_AROUND = (
    "{}", "before {} after", '"{}"', "'{}'", '">{}', "</bdi></td></table>{}", "<!-- {} -->", "{0} {0}",
)  # fmt: skip


def _text(attack: str, around: str) -> str:
    whole = around.replace("{0}", "\0mark").replace("{}", "\0mark")
    return whole.replace("\0mark", attack).encode("utf-16", "surrogatepass").decode("utf-16")


#: The texts, each once.
TEXTS = tuple(islice(dict.fromkeys(_text(attack, around) for around, attack in product(_AROUND, _ATTACKS)), 500))
#: One of the greatest length that an answer may have, in bytes of UTF-8.
LONGEST = ("<img src=x onerror=window.ran=1>\u202e" * 10_000).encode()[: 256 << 10].decode(errors="ignore")
