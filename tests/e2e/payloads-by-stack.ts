/**
 * Payloads as common software writes them, each with its source. Their authors have not read our guide: these are the
 * defaults of serialisers, databases, spreadsheets and form builders.
 */
export interface StackPayload {
  /** The software, with a version that writes it so, and what of it. */
  source: string;
  /** Null: without the header. */
  contentType: string | null;
  /** `REF` stands for the booking's reference. */
  body: string | Uint8Array;
  headers?: Record<string, string>;
  /** Columns of `booking_details`. Dates and moments as text. */
  reads: Record<string, unknown>;
  /** Fields of the payload as PostgreSQL has them, as JSON text. */
  keeps?: Record<string, string>;
  /** Codes, sorted. */
  warnings: string[];
}

type Fields = Record<string, unknown>;

const trip = "consumerTripPartnerExternalReference";

/** A payload that JSON.stringify writes as the source does, apart from the order of fields. */
function json(source: string, fields: Fields, reads: Fields = {}, warnings: string[] = []): StackPayload {
  return {
    source,
    contentType: "application/json",
    body: JSON.stringify({ [trip]: "REF", ...fields }),
    reads,
    warnings,
  };
}

/** A payload whose bytes matter. */
function raw(
  source: string,
  {
    type,
    body,
    keeps,
    headers,
  }: {
    type: string | null;
    body: string | Uint8Array;
    keeps?: Record<string, string>;
    headers?: Record<string, string>;
  },
  reads: Fields = {},
  warnings: string[] = [],
): StackPayload {
  return { source, contentType: type, body, reads, warnings, ...(keeps && { keeps }), ...(headers && { headers }) };
}

const jsonType = "application/json";
const formType = "application/x-www-form-urlencoded";

/** Source, value, day, moment, warnings. Sent both as JSON and as a form. */
const dates: [source: string, sent: string, day: string | null, moment: string | null, warning?: string][] = [
  [".NET 8 System.Text.Json, DateOnly", "2027-06-14", "2027-06-14", null],
  [".NET 8 System.Text.Json, DateTime of kind Unspecified", "2027-06-14T00:00:00", "2027-06-14", null, "no-time-zone"],
  [".NET 8 System.Text.Json, DateTimeOffset", "2027-06-14T15:30:00+02:00", "2027-06-14", "2027-06-14 13:30:00+00"],
  [
    "Newtonsoft.Json 13, DateTime of kind Local",
    "2027-06-14T15:30:00.1234567+02:00",
    "2027-06-14",
    "2027-06-14 13:30:00.123456+00",
  ],
  [".NET Framework 4.8, DateTime.MinValue", "0001-01-01T00:00:00", null, null, "unreadable-date"],
  ['.NET 8, DateTime.ToString("u")', "2027-06-14 15:30:00Z", "2027-06-14", "2027-06-14 15:30:00+00"],
  ['.NET 8, DateTime.ToString("o") in UTC', "2027-06-14T15:30:00.0000000Z", "2027-06-14", "2027-06-14 15:30:00+00"],
  [".NET 8, DateTime.MaxValue", "9999-12-31T23:59:59.9999999", null, null, "unreadable-date"],
  ["Java 21, LocalDate", "2027-06-14", "2027-06-14", null],
  ["Java 21, LocalDateTime without seconds", "2027-06-14T15:30", "2027-06-14", null, "no-time-zone"],
  ["Java 21, OffsetDateTime without seconds", "2027-06-14T15:30+02:00", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Java 21, ZonedDateTime.toString", "2027-06-14T15:30+02:00[Europe/Berlin]", "2027-06-14", "2027-06-14 13:30:00+00"],
  [
    "Java 21, Instant with nanoseconds",
    "2027-06-14T13:30:00.123456789Z",
    "2027-06-14",
    "2027-06-14 13:30:00.123456+00",
  ],
  ["Java 21, DateTimeFormatter.BASIC_ISO_DATE", "20270614", "2027-06-14", null],
  ["Java 21, DateTimeFormatter.ISO_DATE with an offset", "2027-06-14+02:00", "2027-06-14", null],
  ["Jackson 2.9, java.util.Date", "2027-06-14T13:30:00.000+0000", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Jackson 2.17, java.util.Date", "2027-06-14T13:30:00.000+00:00", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["JAXB 4, xs:date with a zone", "2027-06-14Z", "2027-06-14", null],
  ["Joda-Time 2.12, DateTime", "2027-06-14T15:30:00.000+02:00", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["PHP 8.3, DATE_ATOM", "2027-06-14T15:30:00+02:00", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["PHP 8.3, DATE_ISO8601", "2027-06-14T15:30:00+0200", "2027-06-14", "2027-06-14 13:30:00+00"],
  ['PHP 8.3, date("Y-m-d H:i:s")', "2027-06-14 15:30:00", "2027-06-14", null, "no-time-zone"],
  ["Laravel 11, Carbon as JSON", "2027-06-14T13:30:00.000000Z", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["PHP 8.3, date of MySQL's zero date", "-0001-11-30T00:00:00+00:00", null, null, "unreadable-date"],
  ["Python 3.12, date.isoformat", "2027-06-14", "2027-06-14", null],
  ["Python 3.12, datetime.isoformat, naive", "2027-06-14T15:30:00.123456", "2027-06-14", null, "no-time-zone"],
  ["Python 3.12, datetime.isoformat, aware", "2027-06-14T15:30:00+02:00", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Python 3.12, str(datetime)", "2027-06-14 15:30:00+02:00", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Django 5, DjangoJSONEncoder", "2027-06-14T13:30:00.123Z", "2027-06-14", "2027-06-14 13:30:00.123+00"],
  ['pandas 2.2, to_json(date_format="iso")', "2027-06-14T00:00:00.000", "2027-06-14", null, "no-time-zone"],
  ["Node.js 22, Date.toISOString", "2027-06-14T13:30:00.000Z", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Luxon 3, DateTime.toSQL", "2027-06-14 15:30:00.000 +02:00", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Ruby 3.3, Time#to_s", "2027-06-14 15:30:00 +0200", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Ruby 3.3, Time#to_s in UTC", "2027-06-14 13:30:00 UTC", "2027-06-14", "2027-06-14 13:30:00+00"],
  [
    "Rails 7.1, ActiveSupport::TimeWithZone as JSON",
    "2027-06-14T15:30:00.000+02:00",
    "2027-06-14",
    "2027-06-14 13:30:00+00",
  ],
  ["Go 1.22, time.Time as JSON", "2027-06-14T15:30:00.123456789+02:00", "2027-06-14", "2027-06-14 13:30:00.123456+00"],
  ["Go 1.22, the zero time.Time as JSON", "0001-01-01T00:00:00Z", null, null, "unreadable-date"],
  ["Go 1.22, the zero time.Time by its String method", "0001-01-01 00:00:00 +0000 UTC", null, null, "unreadable-date"],
  ["PostgreSQL 16, timestamptz as text", "2027-06-14 15:30:00+02", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["MySQL 8, DATETIME", "2027-06-14 15:30:00", "2027-06-14", null, "no-time-zone"],
  ["MySQL 5.7, zero date", "0000-00-00 00:00:00", null, null, "unreadable-date"],
  ["MySQL 5.7, zero DATE", "0000-00-00", null, null, "unreadable-date"],
  ["SQL Server 2022, datetime as text, style 121", "2027-06-14 15:30:00.000", "2027-06-14", null, "no-time-zone"],
  [
    "SQL Server 2022, datetimeoffset as text",
    "2027-06-14 15:30:00.0000000 +02:00",
    "2027-06-14",
    "2027-06-14 13:30:00+00",
  ],
  ["SAP ABAP 7.5, DATS", "20270614", "2027-06-14", null],
  ["Salesforce REST API v60, Datetime", "2027-06-14T13:30:00.000+0000", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Rust chrono 0.4, DateTime<Utc> by serde", "2027-06-14T13:30:00Z", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Rust chrono 0.4, NaiveDateTime by serde", "2027-06-14T15:30:00", "2027-06-14", null, "no-time-zone"],
  ["Elixir 1.16, to_string(DateTime)", "2027-06-14 13:30:00Z", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Swift 5.10, ISO8601DateFormatter", "2027-06-14T13:30:00Z", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["Perl 5, DateTime::Format::RFC3339 in lower case", "2027-06-14t13:30:00z", "2027-06-14", "2027-06-14 13:30:00+00"],
  ["HTML 5, input of type datetime-local", "2027-06-14T15:30", "2027-06-14", null, "no-time-zone"],
  ["CSV of LibreOffice 24.2 with a blank before the value", " 2027-06-14", "2027-06-14", null],
  [
    "Temporal, ZonedDateTime.toString",
    "2027-06-14T15:30:00+02:00[Europe/Berlin]",
    "2027-06-14",
    "2027-06-14 13:30:00+00",
  ],
];

/** Source, value, E.164. Without one: a warning. */
const phones: [source: string, sent: string, e164: string | null][] = [
  ["libphonenumber 8.13, INTERNATIONAL", "+44 20 7183 8750", "+442071838750"],
  ["libphonenumber 8.13, RFC3966", "tel:+44-20-7183-8750", "+442071838750"],
  ["a British website, trunk zero in brackets", "+44 (0)20 7183 8750", "+442071838750"],
  ["Excel 365, trunk zero kept behind the calling code", "+44 07911 123456", "+447911123456"],
  ["SAP CRM 7, trunk zero without a blank", "+4407911123456", "+447911123456"],
  ["Microsoft Outlook 365, canonical format", "+49 (30) 901820", "+4930901820"],
  ["an Italian hotel system, where the zero is part of the number", "+39 (0)6 6982", "+39066982"],
  ["an agency in Abidjan, ten digits since 2021", "+225 07 01 23 45 67", "+2250701234567"],
  ["Amadeus PNR, 00 for +", "0044 20 7183 8750", "+442071838750"],
  ["Salesforce, with an extension", "+1 (415) 555-2671 x123", "+14155552671"],
  ["Avaya directory, extension of RFC 3966", "+1-415-555-2671;ext=123", "+14155552671"],
  ["Excel 365 with dots", "+33.1.42.68.53.00", "+33142685300"],
  ["WhatsApp, copied with direction marks", "\u202a+44 7911 123456\u202c", "+447911123456"],
  [
    "a Japanese form with full-width digits",
    "\uff0b\uff18\uff11\uff13\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18",
    "+81312345678",
  ],
  ["a WordPress form without a rule", "ask reception", null],
  ["a national number, of a partner without a country", "020 7183 8750", null],
];

const flags: [source: string, sent: string, read: boolean | null][] = [
  [".NET 8, bool.ToString", "True", true],
  [".NET 8, bool.ToString", "False", false],
  ["Java 21, Boolean.toString", "true", true],
  ["PHP 8.3, strval(true)", "1", true],
  ["PHP 8.3, strval(false), which is empty", "", null],
  ["Python 3.12, str(False)", "False", false],
  ["PostgreSQL 16, boolean as text", "t", true],
  ["Oracle 19c, CHAR(1)", "N", false],
  ["Oracle 19c, CHAR(3), padded", "Y  ", true],
  ["MySQL 8, TINYINT(1)", "0", false],
  ["Excel 365, TRUE", "TRUE", true],
];

const emails: [source: string, sent: string, read: string][] = [
  ["Outlook 365, copied with its display name", "Ada Byron <ada@example.com>", "ada@example.com"],
  ["Chrome 126, a link's address copied", "mailto:ada@example.com", "ada@example.com"],
  ["a CSV file of Windows, with its line end", "ada@example.com\r\n", "ada@example.com"],
  ["iOS 17, with the blank of a completed word", "ada@example.com ", "ada@example.com"],
  ["an Irish name", "o'brien@example.com", "o'brien@example.com"],
  ["Gmail, with a tag", "ada+trips@example.com", "ada+trips@example.com"],
];

/** Any of the four references stands for the booking STACK-…: see the test. */
const references: [source: string, sent: string, warnings: string[]][] = [
  ["a CSV file of Windows, whose line end is in the last column", "REF\r\n", ["untidy-reference"]],
  ["Excel 365, a no-break space", "REF\u00a0", ["untidy-reference"]],
  ["Slack, copied with a zero-width space", "REF\u200b", ["untidy-reference"]],
  ["Excel's CSV UTF-8, whose byte order mark is in the first column", "\ufeffREF", ["untidy-reference"]],
  ["Word 365, a soft hyphen", "RE\u00adF", ["untidy-reference"]],
  ["Oracle 19c, CHAR(20), padded", "REF               ", ["untidy-reference"]],
];

const money = (text: string) => `{"${trip}":"REF","total":${text}}`;

const texts: StackPayload[] = [
  json("Hibernate 6, every empty column as an empty text", {
    consumerGivenName: "",
    consumerPhone: "",
    agentEmail: "",
    consumerTripArrivalDate: "",
  }),
  json("Oracle 19c, CHAR columns of blanks", { consumerGivenName: "   ", consumerTripVenueName: "  " }),
  json("Gson 2.11 with serializeNulls, where null is allowed", {
    consumerLanguage: null,
    consumerEmail: null,
    consumerNationality: null,
    consumerCurrency: null,
  }),
  json("TinyMCE 7, an address of 5,000 characters", {
    consumerTripAccommodationAddress: "1 Example Street ".repeat(290),
  }),
  json("Salesforce, a locale as the language", { consumerLanguage: "en_US" }, { consumer_language: "en-US" }),
  json(
    "Java 21, Locale.toString of Indonesian before Java 17",
    { consumerLanguage: "in_ID" },
    { consumer_language: "id-ID" },
  ),
  json("Java 8, Locale of Hebrew", { consumerLanguage: "iw" }, { consumer_language: "he" }),
  json("Windows 11, GetUserDefaultLocaleName", { consumerLanguage: "zh-Hant-TW" }, { consumer_language: "zh-Hant-TW" }),
  json(
    "Amadeus, nationality in three letters",
    { consumerNationality: "GBR" },
    { consumer_nationality_normalised: "GB" },
  ),
  json("Booking software of the EU, Greece", { consumerNationality: "EL" }, { consumer_nationality_normalised: "GR" }),
  json("Zapier, nationality as a name", { consumerNationality: "Portugal" }, { consumer_nationality_normalised: "PT" }),
  json("MySQL 8, a currency in lower case", { consumerCurrency: "eur" }, { consumer_currency_normalised: "EUR" }),
  json("Airtable, a currency's sign", { consumerCurrency: "\u20ac" }, { consumer_currency_normalised: "EUR" }),
  json(
    "SQL Server 2022, a time zone of Windows",
    { agentTimezone: "W. Europe Standard Time" },
    { agent_timezone_normalised: "Europe/Berlin" },
  ),
  json(
    "Rails 7.1, an old name of a time zone",
    { agentTimezone: "Asia/Calcutta" },
    { agent_timezone: "Asia/Calcutta" },
  ),
  json(
    "Sabre, an airport in lower case",
    { consumerTripDestinationAirportCode: "lis" },
    { consumer_trip_destination_airport_code_normalised: "LIS" },
  ),
  json(
    "a form with a free field for the airport",
    { consumerTripDestinationAirportCode: "Lisbon" },
    { consumer_trip_destination_airport_code_normalised: null },
    ["unreadable-airport-code"],
  ),
  json("a sender of the interface before its third change", { consumerTripBookingDate: "2027-06-14" }, {}, ["retired"]),
  json("an ORM of snake case", { consumer_given_name: "Ada" }, {}, ["similar-name"]),
  json("Zapier, a first name", { consumerFirstName: "Ada" }, {}, ["similar-name"]),
  json(
    "Holibob's example of an event",
    {
      consumerTripIsInternational: "true",
      consumerTripArrivalDate: "2027-06-14",
      consumerTripReturnDate: "2027-06-20",
      extra: { nested: [1, 2] },
    },
    { consumer_trip_is_international: true },
  ),
  raw(
    "Python 3.12, json.dumps with ensure_ascii",
    { type: jsonType, body: `{"${trip}": "REF", "consumerGivenName": "Zo\\u00eb \\ud83d\\ude00"}` },
    { consumer_given_name: "Zo\u00eb \u{1f600}" },
  ),
  raw(
    "PHP 8.3, json_encode with escaped slashes",
    { type: jsonType, body: `{"${trip}":"REF","consumerTripVenueAddress":"1\\/2 Square"}` },
    { consumer_trip_venue_address: "1/2 Square" },
  ),
  raw("Java 21, BigDecimal with its scale, whose value is kept", {
    type: jsonType,
    body: money("199.90"),
    keeps: { total: "199.9" },
  }),
  raw("Java 21, BigDecimal with an exponent", { type: jsonType, body: money("1E+2"), keeps: { total: "100" } }),
  raw("a snowflake id of 64 bits", {
    type: jsonType,
    body: money("9007199254740993"),
    keeps: { total: "9007199254740993" },
  }),
  raw("Go 1.22, float64 of a million", { type: jsonType, body: money("1e+06"), keeps: { total: "1000000" } }),
  raw("Python 3.12, a float", {
    type: jsonType,
    body: money("0.30000000000000004"),
    keeps: { total: "0.30000000000000004" },
  }),
  raw("MySQL 8, DECIMAL(30,20) by JSON_OBJECT", {
    type: jsonType,
    body: money("12345678.12345678901234567890"),
    keeps: { total: "12345678.12345678901234567890" },
  }),
  raw(
    "C, a text from a fixed buffer",
    { type: jsonType, body: `{"${trip}":"REF","consumerGivenName":"Ada\\u0000"}` },
    { consumer_given_name: "Ada\ufffd" },
    ["unstorable-text"],
  ),
  raw(
    "JavaScript, a text cut within an emoji",
    { type: jsonType, body: `{"${trip}":"REF","consumerGivenName":"Ada \\ud83d"}` },
    { consumer_given_name: "Ada \ufffd" },
    ["unstorable-text"],
  ),
  raw(".NET 8, StreamWriter with Encoding.UTF8, which writes a byte order mark", {
    type: "application/json; charset=utf-8",
    body: `\ufeff{"${trip}":"REF"}`,
  }),
  raw("JSON.stringify with an indent, and Windows line ends", {
    type: jsonType,
    body: `{\r\n\t"${trip}": "REF"\r\n}\r\n`,
  }),
];

const latin1 = (text: string) => Buffer.from(text, "latin1");
const utf16le = (text: string) => Buffer.from(`\ufeff${text}`, "utf16le");

const types: StackPayload[] = [
  raw("axios 1.7", { type: "application/json", body: `{"${trip}":"REF"}` }),
  raw("ASP.NET Core 8, HttpClient.PostAsJsonAsync", {
    type: "application/json; charset=utf-8",
    body: `{"${trip}":"REF"}`,
  }),
  raw("Apache HttpClient 4.5, a quoted charset", {
    type: 'application/json;charset="UTF-8"',
    body: `{"${trip}":"REF"}`,
  }),
  raw("SharePoint 2019, a parameter of its own", { type: "application/json;odata=verbose", body: `{"${trip}":"REF"}` }),
  raw("a client of JSON:API 1.1", { type: "application/vnd.api+json", body: `{"${trip}":"REF"}` }),
  raw(".NET Framework 3.5", { type: "text/json", body: `{"${trip}":"REF"}` }),
  raw("curl 8.7, -d without a header", { type: formType, body: `{"${trip}":"REF"}` }, {}, ["wrong-content-type"]),
  raw("Chrome 126, fetch with a text", { type: "text/plain;charset=UTF-8", body: `{"${trip}":"REF"}` }, {}, [
    "wrong-content-type",
  ]),
  raw("a socket program without the header", { type: null, body: `{"${trip}":"REF"}` }, {}, ["wrong-content-type"]),
  raw(
    "JAX-RS 2 with its default charset declared",
    { type: "application/json;charset=ISO-8859-1", body: latin1(`{"${trip}":"REF","consumerGivenName":"Zo\u00eb"}`) },
    { consumer_given_name: "Zo\u00eb" },
  ),
  raw(
    "Classic ASP, windows-1252 declared",
    {
      type: "application/json; charset=windows-1252",
      body: Buffer.concat([
        latin1(`{"${trip}":"REF","consumerGivenName":"Zo\u00eb `),
        Buffer.from([0x80]),
        latin1('"}'),
      ]),
    },
    { consumer_given_name: "Zo\u00eb \u20ac" },
  ),
  raw(
    "Windows PowerShell 5.1, UTF-16 declared",
    { type: "application/json; charset=utf-16", body: utf16le(`{"${trip}":"REF","consumerGivenName":"Zo\u00eb"}`) },
    { consumer_given_name: "Zo\u00eb" },
  ),
  raw("SAP PI 7.5, a charset as the content encoding", {
    type: jsonType,
    headers: { "Content-Encoding": "utf-8" },
    body: `{"${trip}":"REF"}`,
  }),
  raw("PHP 8.3, http_build_query with a list", {
    type: formType,
    body: `${trip}=REF&extras%5B0%5D=bike&extras%5B1%5D=boat`,
    keeps: { "extras[0]": '"bike"', "extras[1]": '"boat"' },
  }),
  raw("jQuery 3.7, $.param with a nested object", {
    type: formType,
    body: `${trip}=REF&customer%5Bname%5D=Ada`,
    keeps: { "customer[name]": '"Ada"' },
  }),
  raw("Rails 7.1, a check box with its hidden field", {
    type: formType,
    body: `${trip}=REF&newsletter=0&newsletter=1`,
    keeps: { newsletter: '["0", "1"]' },
  }),
  raw("Python 3.12, urlencode(doseq=True) with a list", {
    type: formType,
    body: `${trip}=REF&extra=bike&extra=boat`,
    keeps: { extra: '["bike", "boat"]' },
  }),
  raw("HTML 5, a form with keys with spaces", {
    type: formType,
    body: `${trip}=REF&Room+type=Double+%26+sea`,
    keeps: { "Room type": '"Double & sea"' },
  }),
  raw(
    "a shell script whose file ends with a line break",
    { type: formType, body: `consumerGivenName=Ada&${trip}=REF\n` },
    { consumer_given_name: "Ada" },
  ),
  raw("a template that escaped the ampersand", { type: formType, body: `${trip}=REF&amp;consumerGivenName=Ada` }, {}, [
    "similar-name",
  ]),
  raw("Visual Basic 6, an unescaped percent sign", {
    type: formType,
    body: `${trip}=REF&discount=100%&note=20%25`,
    keeps: { discount: '"100%"', note: '"20%"' },
  }),
  raw(
    "Java 8, URLEncoder in ISO-8859-1, declared",
    { type: `${formType}; charset=ISO-8859-1`, body: `${trip}=REF&consumerGivenName=Zo%EB` },
    { consumer_given_name: "Zo\u00eb" },
  ),
  raw("a client that sends the same key in quotes", {
    type: jsonType,
    headers: { "Idempotency-Key": '"REF-key"' },
    body: `{"${trip}":"REF"}`,
  }),
  raw(
    "a gateway that sends every known header, empty",
    { type: jsonType, headers: { "Idempotency-Key": "" }, body: `{"${trip}":"REF"}` },
    {},
    ["empty-key"],
  ),
  raw(
    "a CRM that knows consumers only",
    { type: jsonType, body: '{"consumerPartnerExternalReference":"REF","consumerGivenName":"Ada"}' },
    { consumer_given_name: "Ada" },
    ["no-trip-reference"],
  ),
  raw(
    "an ORM whose empty trip reference is an empty text",
    { type: jsonType, body: `{"${trip}":"","consumerPartnerExternalReference":"REF"}` },
    {},
    ["no-trip-reference"],
  ),
];

export const payloadsByStack: StackPayload[] = [
  ...dates.map(([source, sent, day, moment, warning]) =>
    json(
      source,
      { consumerTripArrivalDate: sent },
      { consumer_trip_arrival_date: day, consumer_trip_arrival_at: moment },
      warning === undefined ? [] : [warning],
    ),
  ),
  ...phones.map(([source, sent, e164]) =>
    json(
      source,
      { consumerPhone: sent },
      { consumer_phone: e164, consumer_phone_as_sent: sent },
      e164 === null ? ["unreadable-phone"] : [],
    ),
  ),
  ...flags.map(([source, sent, read]) =>
    json(source, { consumerTripIsInternational: sent }, { consumer_trip_is_international: read }),
  ),
  ...emails.map(([source, sent, read]) => json(source, { agentEmail: sent }, { agent_email_normalised: read })),
  ...references.map(([source, sent, warnings]) => json(source, { [trip]: sent }, {}, warnings)),
  ...texts,
  ...types,
];
