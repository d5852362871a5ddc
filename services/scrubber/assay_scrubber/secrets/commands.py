"""Match credentials on command lines: `curl -u user:…`, `mysql -p…`, `echo … | sudo -S`."""

import re
from collections.abc import Callable, Iterator

from assay_scrubber.family import LiteralRule, View, nothing

from .extent import judged
from .values import TEMPLATE, is_password, is_placeholder, is_written_with_digits

# An argument: in quotes, or up to a space.
_ARGUMENT = rb"(?:\\{0,3}'([^'\n]{1,256})\\{0,3}'|\\{0,3}\"([^\"\n]{1,256}?)\\{0,3}\"|([^\s'\"`|<>&;()]{1,256}[^\s'\"`|<>;()]*))"
_USER = rb"[\w.@+\-\\]{1,64}:"
_USER_AND = rb"(?:\\{0,3}'%b([^'\n]{1,256}?)\\{0,3}'|\\{0,3}\"%b([^\"\n]{1,256}?)\\{0,3}\"|%b(?:%b))" % (
    _USER,
    _USER,
    _USER,
    _ARGUMENT,
)
_FREE = rb"(?<=[ \t])"

#: By tool: the options whose argument is a secret, as patterns before the argument.
_TOOLS: tuple[tuple[bytes, bytes], ...] = (
    (
        b"curl|wget|http|https|xh|nexus-cli|lftp|etcdctl|jenkins-cli",
        rb"(?:-u|--user|--proxy-user|-U|-a|--?auth|-[a-zA-Z]{1,6}u)(?:[ =]|(?=[\"'\w])) {0,2}@",
    ),
    (b"lftp|ncftp|ncftpput|ncftpget", rb"-u [\w.@\-]{1,64},|-p "),
    (
        b"mysql|mysqldump|mysqladmin|mysqlimport|mysqlcheck|mysqlsh|mariadb|mariadb-dump|mycli",
        rb"-p(?=[^\s\-])|--password[= ]",
    ),
    (b"sshpass|plink|pscp|putty", rb"-pw |-p ?"),
    (
        b"docker|podman|helm|oras|crane|skopeo|buildah|nerdctl|az|oc|kubectl|rancher|cf|ibmcloud",
        rb"(?:login|acr|registry)\b[^\n|;]{0,160}? -p |--(?:password|creds|dest-creds|src-creds)[= ](?:[\w.\-]{1,48}:)?",
    ),
    (b"redis-cli|valkey-cli|keydb-cli", rb"-a |--pass |(?:AUTH|auth) (?:default )?"),
    (
        b"mongo|mongosh|mongodump|mongorestore|mongoexport|mongoimport|mongostat|cqlsh|influx|couchbase-cli|rabbitmqadmin|arangosh|vsql|impala-shell|beeline|mosquitto_pub|mosquitto_sub|rdesktop|evil-winrm|nxc|netexec|crackmapexec|winrs|xfreerdp|smbmap|hydra|cypher-shell|snowsql",
        rb"-p |-P |-pw |--password[= ]|/p:|/pw:|-p:",
    ),
    (b"ldapsearch|ldapmodify|ldapadd|ldapdelete|ldapwhoami|ldapcompare", rb"-w "),
    (b"ldappasswd", rb"-w |-s |-a "),
    (b"ansible-vault", rb"encrypt_string "),
    (b"ssh-keygen", rb"-N |-P "),
    (b"db2", rb"user [\w.\-]{1,64} using "),
    (b"rclone", rb"obscure "),
    (b"s3cmd|s4cmd", rb"--secret[_\-]key[= ]"),
    (b"mc", rb"alias set [^\s]{1,64} [^\s]{1,128} [^\s]{1,64} "),
    (
        b"grafana-cli|grafana|neo4j-admin|drush",
        rb"(?:reset-admin-password|set-initial-password|user[:\-]password [\w.\-]{1,32}) ",
    ),
    (
        b"impacket-psexec|impacket-smbexec|impacket-wmiexec|impacket-secretsdump|psexec.py|smbexec.py|wmiexec.py|secretsdump.py",
        rb"(?:[\w.\-]{1,32}/)?[\w.\-]{1,32}:",
    ),
    (b"rabbitmqctl", rb"(?:add_user|change_password|authenticate_user) [\w.\-]{1,64} "),
    (
        b"smbclient|rpcclient|smbget|net|mount.cifs|nmblookup|wmic",
        rb"(?:-U|--user)[ =]?[\"']?[\w.\\@/\-]{1,64}%|pass(?:word)?=",
    ),
    (b"openssl|gpg|gpg2", rb"-k |-pass(?:in|out)? (?:pass:)|-pass(?:in|out)?=pass:|--passphrase[= ]|-passwd "),
    (b"7z|7za|7zr|7zz|rar|unrar", rb"-p(?=[^\s])|-hp(?=[^\s])"),
    (
        b"zip|unzip|zipcloak|pdftotext|qpdf|pdftk",
        rb"-P |--password[= ]|-upw |-opw |-owner-password |-user-password |user_pw |owner_pw |input_pw ",
    ),
    (b"sqlcmd|bcp|osql|isql|tsql|sqsh", rb"-P ?(?=[^\s\-])"),
    (b"sqlplus|rman|expdp|impdp|sqlldr", rb"[\w$#\-]{1,30}/(?=[^/\s])"),
    (b"keytool|jarsigner|apksigner", rb"-(?:store|key|srcstore|deststore|new)pass ?(?:pass:)?"),
    (b"ipmitool|snmpwalk|snmpget|snmpset|ipmi-config|racadm", rb"-P |-A |-X |-p "),
    (b"vault", rb"login (?:-method=\w{1,16} )?(?=[\w.]{8,}(?:\s|$))"),
    (b"vault operator", rb"unseal (?=[\w+/=]{16,}(?:\s|$))"),
    (b"ngrok", rb"(?:add-)?authtoken (?=[\w\-]{16,}(?:\s|$))"),
    (b"cmdkey|schtasks|psexec|winexe|signtool|certutil|robocopy", rb"/pass:|/p |/rp |-p "),
    (b"doveadm", rb"auth (?:test|login) [^\s]{1,64} |-p "),
    (b"wpa_passphrase", rb"(?:'[^'\n]{1,32}'|\"[^\"\n]{1,32}\"|[^\s'\"]{1,32}) "),
    (b"nmcli|iwctl", rb"(?:password|passphrase|--passphrase) "),
    (
        b"htpasswd|htdigest|mosquitto_passwd",
        rb"-[a-zA-Z]{0,5}b[a-zA-Z]{0,5} [^\s]{1,128} [^\s]{1,64} |-nb[a-zA-Z]{0,5} [^\s]{1,64} ",
    ),
    (b"sudo|su|kinit|cryptsetup|passwd|chpasswd", rb"<<< ?"),
    (b"adduser|useradd|usermod", rb"(?:-p|--password)[ =]"),
    (
        b"rsync|ansible|ansible-playbook|twine|heroku|gh|glab|npm|yarn|pnpm|poetry|gem|cargo|flyctl|doctl|hub|databricks|snowsql|wrangler|netlify|vercel",
        (
            rb"(?:--password|--token|--auth-token|--otp)[= ]|login[^\n|;]{0,48}<<< ?|publish[^\n|;]{0,64} --token "
            rb"|(?:upload|publish)[^\n|;]{0,64} -p |secret set [\w\-]{1,64} (?:--body|-b)[= ]"
            rb"|pypi-token\.\w{1,32} |http-basic\.\w{1,32} [\w\-]{1,32} |cargo login "
        ),
    ),
)
_COMMAND = re.compile(rb"(?:[^\n\r\\]|\\\r?\n|\\.){1,1500}+")
_STOPS = re.compile(rb"(?<!\\)(?:&&|\|\||;(?= ))")
_SHORTEST = 3
# Text between two strings: a value never consists of marks alone.
_MARKS = re.compile(rb"[\x20-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]+")
_ALGORITHM = re.compile(rb"(?i:sha|md|aes|des|rsa)[\-_]?[0-9]{0,4}(?:[\-_](?:cbc|gcm|ctr|[0-9]{3}))?")
_NUMBERS = re.compile(rb"[0-9]{1,5}(?:[,\-][0-9]{1,5}){0,8}(?::[0-9]{1,5}){0,2}(?:/(?:tcp|udp))?")


_LOOKS_LIKE_OPTIONS = rb"(?:[\x22']?[\-/]|[^\n]*(?: [\x22']?[\-/]|%|<|_pw|pass|basic|[a-z0-9]/))"
#: Distinctive names of tools that take a password without an option.
_BARE = frozenset(
    b"wpa_passphrase rabbitmqctl ansible-vault rclone db2 grafana-cli neo4j-admin drush mc redis-cli valkey-cli psexec.py smbexec.py"
    b" wmiexec.py"
    b" secretsdump.py impacket-psexec impacket-smbexec impacket-wmiexec impacket-secretsdump ngrok".split()
) | {b"vault operator"}


def _rules(tools: bytes, options: bytes) -> Iterator[LiteralRule]:
    with_user = options.endswith(b"@")
    names = tools.split(b"|")
    named = b"(?:%b)" % b"|".join(map(re.escape, names))
    pattern = re.compile(
        _FREE + rb"(?:%b)" % options.removesuffix(b" {0,2}@") + rb" {0,2}" + (_USER_AND if with_user else _ARGUMENT)
    )
    for name in names:
        yield LiteralRule(
            re.compile(rb"(?<![\w.\-])%b(?:\.exe)?[ \t]" % re.escape(name) + _COMMAND.pattern),
            nothing,
            lower=True,
            anchored=True,
            needle=name,
            opens=rb"(?:^|[^a-z0-9_.\-])"
            + named
            + rb"(?:\.exe)?[ \t]"
            + (b"" if name in _BARE else _LOOKS_LIKE_OPTIONS),
            spread=_arguments(pattern),
        )


def _is_argument(value: bytes) -> bool:
    """Return whether a value can be a typed argument: not an option, variable, path, port or placeholder."""
    if len(value) < _SHORTEST or TEMPLATE.fullmatch(value) or value[:1] in b"-$`" or is_placeholder(value):
        return False
    if _MARKS.fullmatch(value) or _ALGORITHM.fullmatch(value):
        return False
    return _NUMBERS.fullmatch(value) is None or (len(value) > 5 and value.isdigit())


def _arguments(pattern: re.Pattern[bytes]) -> Callable[[View, re.Match[bytes]], Iterator[tuple[int, int]]]:
    def spread(view: View, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
        stop = _STOPS.search(view.raw, match.start(), match.end())
        for argument in pattern.finditer(view.raw, match.start(), stop.start() if stop else match.end()):
            group = argument.lastindex
            if group is not None and _is_argument(argument.group(group)):
                yield argument.span(group)

    return spread


_ECHO = re.compile(
    rb"(?:echo(?: -n| -e)?|printf(?: ['\"]%s(?:\\n)?['\"])?) "
    + _ARGUMENT
    + rb" ?\| ?(?:base64 -{1,2}d(?:ecode)? ?\| ?)?(?:[^\n|;]{0,80} )?(?:sudo (?:[^\n|;]{0,40} )?-\w{0,3}S|su "
    rb"|[^\n|;]{0,120}--(?:password|token|pass|passphrase|passwd)(?:-on)?-stdin"
    rb"|passwd [^\n|;]{0,40}--stdin"
    rb"|kinit|cryptsetup|[^\n|;]{0,80}--with-token|[^\n|;]{0,80}--passphrase-fd|chpasswd|pass insert|smbpasswd"
    rb"|[^\n|;]{0,80}login (?:[^\n|;]{0,80} )?-(?![\w\-]))"
)
_AFTER_USER = re.compile(rb"[\w.\-]{1,32}:(?=.)")


def _echoed(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    group = next(number for number in (1, 2, 3) if match.group(number) is not None)
    start, end = match.span(group)
    user = _AFTER_USER.match(view.raw, start, end) if match.group(0).endswith(b"chpasswd") else None
    start = user.end() if user else start
    return (start, end) if _is_argument(view.raw[start:end]) else None


# `net use Z: \\server\share …`, `net user ana … /add`: the argument has no option before it.
_NET = re.compile(
    rb"(?i:net(?:\.exe)? (?:use [^\n]{0,80}?\\\\[^\s\\]{1,64}\\[^\s]{1,64} (?:/user:[^\s]{1,64} )?|user [\w.\-]{1,32} ))"
    + _ARGUMENT
    + rb"(?= |$|\n)"
)
_HERE = re.compile(rb"<<< ?" + _ARGUMENT)
_READS_SECRETS = re.compile(rb"(?:login|auth|token|passw|secret|kinit|sudo|cryptsetup|su|passphrase)[^\n|;]{0,80}$")
_SET = re.compile(
    rb"(?i:setx?(?: -[a-z]{1,3})?|put|setenv|config:set|env|arg) (?P<name>[\w./:\-]{1,96})[ =]" + _ARGUMENT
)
_NAMED = re.compile(
    rb"(?i)pass(?:w|phrase|$)|pwd|secret|token|(?:api|access|private|signing|encryption|account)_?key|_key$|credential|_auth"
)
# Words about a secret rather than its value: `TOKEN_LIMIT`, `PASSWORD_FILE`.
_MEASURED = re.compile(
    rb"(?i)(?:limit|ttl|count|size|length|max|min|timeout|expiry|days|url|uri|file|path|name|dir|header|type|id|enabled|policy|budget)$"
)


def _net(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    group = match.lastindex
    value = view.raw[match.start(group or 0) : match.end(group or 0)]
    return match.span(group or 0) if _is_argument(value) and not value.startswith((b"/", b"*")) else None


def _here(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if not _READS_SECRETS.search(view.low, max(0, match.start() - 120), match.start()):
        return None
    return _net(view, match)


def _set(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if not _NAMED.search(match["name"]) or _MEASURED.search(match["name"]):
        return None
    group = match.lastindex or 0
    value = view.raw[match.start(group) : match.end(group)]
    return match.span(group) if _is_argument(value) and any(c in b"0123456789!@#$%^&*+~?/" for c in value) else None


# Any tool: a user, and then a password.
_USER_THEN = re.compile(rb" -p[ =]{0,2}" + _ARGUMENT)
_USER_BEFORE = re.compile(rb" (?:-u|-U|-l|--user|--username|--login)[ =]?[\w.@\\/\-]{1,64}(?: [^\n|;]{0,160})?$")
# Any tool: an option with such a name, with one hyphen or with more words.
_OPTION = re.compile(rb"(?<![^\s\"'])--?(?:[a-z]{1,16}-){0,3}(?:pass(?:word|wd|phrase)?|pwd?)[ =]{1,2}" + _ARGUMENT)
_STRING = re.compile(rb"(?i:convertto-securestring(?: -(?:asplaintext|force|string))*+) " + _ARGUMENT)
_AT_HOST = re.compile(rb":(?:'([^'\n]{3,64})'|\"([^\"\n]{3,64})\")@[\w\[]")
_DIRECTIVE = re.compile(
    rb"(?:requirepass|masterauth|bindpw|rootpw|enable secret|enable password|key-string|shared-secret|pre-shared-key"
    rb"|snmp-server community|authentication-key"
    rb"|username [\w.\-]{1,32} (?:privilege [0-9]{1,2} )?(?:password|secret)|radius-server key|tacacs-server key|wpa-psk"
    rb"|wpa-passphrase|isakmp key|r[ow]community|plain-text-password-value|authpassword"
    rb"|(?:key|store)password|: psk(?= [\"']))(?: [0-9]| ascii-text| hexadecimal| encrypted)? {1,4}" + _ARGUMENT
)


# The answer that an expect script sends to a password prompt; a line of `.pgpass`.
_SENT = re.compile(rb"send (?:-- )?\\{0,3}\"(?P<value>[^\"\n]{3,128}?)(?:\\{1,3}[rn])?\\{0,3}\"")
_ASKED = re.compile(rb"(?:assword|assphrase)[^\n]{0,24}\s[^\n]{0,24}$")
_PORTS = (b"5432", b"5433", b"6432")
_PGPASS = re.compile(rb":(?:%b):(?:[\w\-]{1,64}|\*):[\w\-]{1,64}:(?P<value>[^\s:]{3,128}+)(?=\s|$)" % b"|".join(_PORTS))


def _typed(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    asked = _ASKED.search(view.raw, max(0, match.start() - 60), match.start())
    return _held(view, match) if asked else None


def _held(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, _is_argument)


_HASHED = re.compile(rb"\$[0-9a-z]{1,8}\$[\w./$+=,\-]{8,}")


def _directed(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    group = match.lastindex or 0
    value = view.raw[match.start(group) : match.end(group)]
    return (
        match.span(group)
        if _HASHED.fullmatch(value) or (_is_argument(value) and not value.rstrip(b".,;:!?").isalpha())
        else None
    )


def _optional(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    found = _net(view, match)
    return found if found and is_written_with_digits(view.raw[slice(*found)]) else None


def _after_user(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    found = _net(view, match)
    if found is None or not _USER_BEFORE.search(view.raw, max(0, match.start() - 240), match.start()):
        return None
    value = view.raw[slice(*found)]
    return found if is_password(value, quoted=False) and value.find(b"/") < 0 else None


_SETS = rb"(?:setx?(?: -[a-z]+)?|put|setenv|config:set|env|arg) [a-z0-9_./:\-]*(?:pass|pwd|secret|token|key|credential|auth)"
RULES = (
    *(rule for tools, options in _TOOLS for rule in _rules(tools, options)),
    *(LiteralRule(_ECHO, _echoed, anchored=True, needle=word) for word in (b"echo ", b"printf ")),
    LiteralRule(_NET, _net, anchored=True, needle=b"net", opens=rb"net(?:\.exe)? use"),
    LiteralRule(
        _USER_THEN,
        _after_user,
        anchored=True,
        needle=b" -p",
        opens=rb" -p[ =]",
    ),
    LiteralRule(_SENT, _typed, anchored=True, needle=b"send ", opens=rb"assword[^\n]*\n?[^\n]*send "),
    *(
        LiteralRule(
            _PGPASS,
            _held,
            anchored=True,
            needle=b":%b:" % port,
            opens=rb":%b:[a-z0-9_*\-]+:[a-z0-9_\-]+:" % re.escape(port),
        )
        for port in _PORTS
    ),
    LiteralRule(
        _OPTION,
        _optional,
        lower=True,
        anchored=True,
        needle=b"-",
        opens=rb"(?:^|[\s\"'])-{1,2}(?:[a-z]+-){0,3}(?:pass(?:word|wd|phrase)?|pwd?)[ =]",
    ),
    LiteralRule(_STRING, _net, anchored=True, needle=b"convertto-securestring"),
    LiteralRule(_AT_HOST, _net, anchored=True, needle=b":'"),
    LiteralRule(_AT_HOST, _net, anchored=True, needle=b':"', opens=rb":\"[^\"\n ]+\"@"),
    *(
        LiteralRule(_DIRECTIVE, _directed, lower=True, anchored=True, needle=word)
        for word in (
            b"requirepass ",
            b"masterauth ",
            b"bindpw ",
            b"rootpw ",
            b"enable secret ",
            b"enable password ",
            b"key-string ",
            b"shared-secret ",
            b"pre-shared-key ",
            b"snmp-server community ",
            b"authentication-key ",
            b"username ",
            b"radius-server key ",
            b"tacacs-server key ",
            b"wpa-psk ",
            b": psk ",
            b"isakmp key ",
            b"rocommunity ",
            b"rwcommunity ",
            b"plain-text-password-value ",
            b"authpassword ",
            b"keypassword ",
            b"storepassword ",
        )
    ),
    LiteralRule(_HERE, _here, anchored=True, needle=b"<<<"),
    *(
        LiteralRule(_SET, _set, anchored=True, needle=word, opens=_SETS)
        for word in (b"set ", b"setx ", b"put ", b"setenv ", b"config:set ", b"env ", b"arg ")
    ),
)
