"""Keywords in scripts whose letters the projection does not distinguish.

`пароль` and `密码` are projected as one byte for each of their characters, which identifies the keyword's meaning: rules still match bytes.
`Announces.PASSWORD.word` is the pattern of such a keyword. Keywords are stems, to which up to four more letters of their alphabet belong
(`паролем`); `_` stands for the characters between words.
"""

import re
from enum import IntEnum

from .automaton import at_once


class Announces(IntEnum):
    """Meanings of keywords, and the byte that each is projected as."""

    PASSWORD = 0x83
    CODE = 0x84
    TOKEN = 0x85
    PHONE = 0x86
    NATIONAL_ID = 0x87
    PASSPORT = 0x88
    LICENCE = 0x89
    CARD = 0x8A
    BIRTH = 0x8B
    OWN_NUMBER = 0x8C

    @property
    def byte(self) -> bytes:
        """Return the needle of a rule."""
        return bytes([self])

    def before(self, value: bytes) -> "re.Pattern[bytes]":
        """Return a pattern for such a keyword, the text that may follow it, and `value` with one group.

        Letters of its script and signs may stand between.
        """
        return re.compile(
            rb"(?<!%b)%b++(?: ?\([^a-z0-9\n()+]{1,32}\))?[^a-z0-9\n(+]{0,32}+%b" % (self.byte, self.byte, value)
        )

    @property
    def word(self) -> bytes:
        """Return the pattern of a whole keyword."""
        return rb"(?<!%b)%b++" % (self.byte, self.byte)


WORDS: dict[Announces, str] = {
    Announces.PASSWORD: """
    парол лозинк кодов_слов κωδικός: κωδικός_είναι κωδικός_wifi κωδικός_χρήστη κωδικός_σύνδεσης
    κωδικ_πρόσβασης κωδικό_πρόσβασης κωδικός_πρόσβασης συνθηματικ συνθηματικό
    كلمة_المرور كلمة_السر كلمة_مرور كلمه_المرور رمز_عبور کلمه_عبور گذرواژه رمز_المرور סיסמ סיסמה סיסמא
    密码 密碼 口令 パスワード 暗証番号 パスコード 合言葉 비밀번호 비번 암호 패스워드 รหัสผ่าน พาสเวิร์ด पासवर्ड कूटशब्द პაროლ գաղտնաբառ
    """,
    Announces.CODE: """
    код_подтвержд код_авторизац код_активац код_входа код_для_входа кодът_е вашият_код код_за_потвържд
    код_доступа код_из_смс код_безопасн код_підтвердж код_смс одноразов_код ваш_код пин-код пін-код пинкод
    κωδικός_επαλήθευσης κωδικός_επιβεβαίωσης رمز_التحقق كود_التحقق رمز_التأكيد کد_تایید קוד_אימות קוד_האימות קוד_סודי
    验证码 驗證碼 校验码 动态码 动态密码 确认码 安全码 認証コード 確認コード ワンタイムパスワード セキュリティコード
    인증번호 인증코드 보안코드 확인코드 รหัสยืนยัน รหัสโอทีพี รหัส_otp ओटीपी सत्यापन_कोड पिन_कोड पिन
    """,
    Announces.TOKEN: """
    токен ключ_доступа ключ_api секретн_ключ секретний_ключ 令牌 密钥 密鑰 访问密钥 トークン シークレット アクセスキー 秘密鍵 토큰 비밀키
    """,
    Announces.PHONE: """
    телефон тел позвон звоните перезвон набер моб мобильн мобільн сотов дзвон звон факс телефонен
    τηλέφων κινητ τηλ هاتف فون جوال موبايل تلفن تلفون موبایل
    טלפון נייד פלאפון 电话 手机 電話 手機 携帯 联系方式 전화 휴대폰 핸드폰 휴대전화 연락처 โทร มือถือ เบอร์ फ़ोन फोन मोबाइल दूरभाष ফোন মোবাইল
    தொலைபேசி ఫోన్ ફોન ಫೋನ್ ტელეფონ հեռախոս
    """,
    Announces.OWN_NUMBER: """
    мой_номер мій_номер моя_мобилка наш_номер мой_новый_номер мой_рабочий_номер τον_αριθμό_μου ο_αριθμός_μου رقمي 我的号码 私の番号 내_번호
    """,
    Announces.NATIONAL_ID: """
    снилс инн рнокпп іпн егн јмбг личн_номер единен_граждански иин μητρώου_κοινωνικ αμκα αφμ
    ταυτότητ الرقم_القومي رقم_الهوية رقم_البطاقة بطاقة_الهوية
    الهوية_الوطنية رقم_الإقامة
    کد_ملی کد_ملي شماره_ملی شناختی_کارڈ ת.ז תעודת_זהות מספר_זהות 身份证 身分證 身份證
    統一編號 居民身份 マイナンバー 個人番号 주민등록 주민번호 외국인등록
    บัตรประชาชน ประจำตัวประชาชน आधार पहचान_पत्र জাতীয়_পরিচয় পরিচয়পত্র ஆதார் ఆధార్ ಆಧಾರ್ આધાર ਆਧਾਰ
    """,
    Announces.PASSPORT: """
    паспорт загранпаспорт διαβατήρι جواز_السفر جواز_سفر گذرنامه پاسپورت דרכון 护照 護照 パスポート 旅券 여권
    หนังสือเดินทาง पासपोर्ट পাসপোর্ট
    პასპორტ անձնագիր
    """,
    Announces.LICENCE: """
    водительск_удостоверени водительск_прав водійськ_посвідчення δίπλωμα_οδήγησης άδεια_οδήγησης
    رخصة_القيادة رخصة_قيادة گواهینامه
    רישיון_נהיגה רשיון_נהיגה 驾驶证 驾照 駕照 運転免許 免許証 운전면허 ใบขับขี่ ใบอนุญาตขับ ड्राइविंग_लाइसेंस
    """,
    Announces.CARD: """
    карт κάρτ بطاقة_ائتمان کارت כרטיס_אשראי 信用卡 银行卡 卡号 カード 신용카드 카드 บัตรเครดิต कार्ड
    """,
    Announces.BIRTH: """
    дат_рождени дат_рожд д.р д/р родил ημερομηνία_γέννησης γεννήθηκ تاريخ_الميلاد تاریخ_تولد תאריך_לידה 出生日期 生年月日
    생년월일 วันเกิด जन्म_तिथि जन्मतिथि
    """,
}


# Letters of alphabets that are written with spaces between words: Greek to Sinhala, Georgian.
_MORE = "[\u0370-\u0dff\u10a0-\u10ff]{0,4}"
_BETWEEN = r"[\s_-]{1,3}"
_ROWS = [(kind, word.split("_")) for kind, words in WORDS.items() for word in words.split()]
# A word of Greek or Cyrillic letters must begin at a word boundary; Arabic and Hebrew attach articles to it.
_START, _END = r"(?<![\u0370-\u052f])", r"(?![\u0370-\u052f])"
_PATTERNS = [re.compile(_START + (_MORE + _BETWEEN).join(map(re.escape, stems)) + _MORE + _END) for _, stems in _ROWS]
# Match bytes of UTF-8: Unicode classes would make an automaton of tens of megabytes.
_GATE = at_once(rb"[\x80-\xff]*[ \t\n_\-]+".join(re.escape(stem.encode()) for stem in stems) for _, stems in _ROWS)


def _words_in(text: str) -> list[tuple[int, int, Announces]]:
    """Yield start, end and meaning of the keywords."""
    low, words = text.lower(), list[tuple[int, int, Announces]]()
    opened = _GATE(low.encode("utf-8", "replace"))
    if len(low) != len(text):
        low = text  # some letters become two in lower case: keywords in capitals are then not found
    for number in opened:
        kind, stems = _ROWS[number]
        found = low.find(stems[0])
        while found >= 0:
            match = _PATTERNS[number].match(low, found)
            end = match.end() if match is not None else found + 1
            if match is not None:
                words.append((found, end, kind))
            found = low.find(stems[0], end)
    return words


def marked(text: str, raw: bytes) -> bytes:
    """Return the projection `raw` of `text` with each keyword replaced by marks of the same length."""
    words = _words_in(text)
    if not words:
        return raw
    written = bytearray(raw)
    for start, end, kind in words:
        written[start:end] = kind.byte * (end - start)
    return bytes(written)


# Keywords in other scripts as JSON escapes them in ASCII (RFC 8259), with the text between words; JSON inside JSON doubles the backslash.
_ESCAPED = re.compile(rb"(?:\\++u[0-9A-Fa-f]{4}[ _\-]?){2,}")
_CHARACTER = re.compile(rb"\\++u([0-9A-Fa-f]{4})|[ _\-]")


def marked_escapes(raw: bytes, unseen: bytes) -> bytes:
    """Return `raw` with escaped keywords as marks.

    The rest of each escape becomes `unseen`.
    """

    def of_run(run: re.Match[bytes]) -> bytes:
        found = list(_CHARACTER.finditer(run.group()))
        written = [character.group() for character in found]
        text = "".join(chr(int(c[1], 16)) if c[1] else c[0].decode("ascii") for c in found)
        for start, end, kind in _words_in(text):
            written[start:end] = [kind.byte + unseen * (len(escape) - 1) for escape in written[start:end]]
        return b"".join(written)

    return _ESCAPED.sub(of_run, raw)
