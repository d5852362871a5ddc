"""Forms of telephone numbers: the usual national ways of writing (ITU-T E.123, national numbering plans), and each language's own words."""

from collections.abc import Mapping

TEXTS: Mapping[str, tuple[str, ...]] = {
    "phone of US": (
        "call §", "(office) §, ask for Ana", "my cell's §", "text me at § after 5", "SMS to §", "fax: §", "§ (mobile)", "ph. § ",
        "Tel § ext. 204", "phone: § x204", "reach us on § extension 12", "callback number §",
    ),
    "e164": (
        "tel:§", "https://wa.me/§", "https://api.whatsapp.com/send?phone=§", "sms:§?body=hi", '<a href="tel:§">call</a>',
        "sip:§@example.org;user=phone", "caller §", "From=§&To=12345", "WhatsApp §", "signal://§", "facetime:§", "TEL;TYPE=CELL:§",
        "tel:§;ext=204", "https://t.me/§", "imessage:§", "callto:§",
    ),
    "phone of CN": ("手机号：§", "我的电话是§", "电话 §", "联系电话：§"),
    "landline of CN": ("座机：§",),
    "phone of IN": ("mobile no. §", "मोबाइल नंबर: §", "मेरा फ़ोन नंबर § है", "फोन: §"),
    "phone of ID": ("nomor HP saya §", "No. HP: §", "telepon §"),
    "phone of PK": ("فون نمبر: §", "mobile §"),
    "phone of BR": ("telefone: §", "meu celular é §", "whats §", "Fone §"),
    "phone of NG": ("my number na §", "phone no: §"),
    "phone of BD": ("মোবাইল: §", "ফোন নম্বর §"),
    "phone of RU": ("телефон: §", "мой номер §", "тел. §", "позвоните мне §"),
    "phone of JP": ("電話番号：§", "携帯は§です", "TEL §", "携帯電話: §"),
    "phone of MX": ("teléfono: §", "mi celular es §", "tel. cel. §"),
    "phone of PH": ("cellphone number: §", "cp no. §"),
    "phone of VN": ("số điện thoại: §", "SĐT: §", "ĐT: §"),
    "phone of EG": ("رقم الهاتف: §", "موبايل §"),
    "phone of TR": ("telefon numaram §", "cep: §", "GSM: §"),
    "phone of DE": ("Telefon: §", "Handynummer: §", "Mobil §", "ruf mich an unter §", "Rückruf bitte: §"),
    "phone of FR": ("téléphone : §", "mon portable : §", "tél. §", "appelez-moi au §"),
    "phone of GB": ("mobile: §", "ring me on §", "my new mob is §"),
    "phone of IT": ("cellulare: §", "il mio numero è §", "telefono §"),
    "phone of ES": ("móvil: §", "llámame al §"),
    "phone of PL": ("telefon: §", "nr tel. §", "komórka §"),
    "phone of KR": ("전화번호: §", "휴대폰 §", "연락처: §"),
    "phone of TH": ("เบอร์โทร: §", "โทร §"),
    "phone of IL": ("טלפון: §", "נייד §"),
    "phone of GR": ("τηλέφωνο: §", "κινητό §"),
    "phone of UA": ("номер телефону: §",),
    "phone of IR": ("شماره تلفن: §", "موبایل: §"),
    "phone of NL": ("telefoonnummer: §", "bel me op §"),
    "phone of SE": ("telefonnummer: §", "mobilnr §"),
    "phone of CZ": ("telefonní číslo: §",),
    "phone of HU": ("telefonszám: §",),
    "phone of RO": ("număr de telefon: §",),
}  # fmt: skip

PARSED: Mapping[str, tuple[str, ...]] = {
    "phone of US": (
        '{"phone": "§"}',
        '{"contact": {"mobile": "§"}}',
        '{"tel": ["§", "ext. 12"]}',
        '{"fax_number": "§"}',
    ),
    "phone digits of US": ('{"phoneNumber": §}', '{"cell_phone": "§"}', '{"callerId": "§"}'),
    "phone of DE": ('{"telefonnummer": "§"}', '{"handy": "§"}'),
    "phone of FR": ('{"telephone": "§"}', '{"portable": "§"}'),
    "phone of MX": ('{"teléfono": "§"}', '{"celular": "§"}'),
    "phone of CN": ('{"手机": "§"}', '{"mobile": "§"}'),
    "phone of JP": ('{"電話番号": "§"}',),
    "e164": ('{"msisdn": "§"}', '{"wa_id": "§"}', '{"from": "whatsapp:§"}', '{"recipients": ["§"], "channel": "sms"}'),
}
