#!/usr/bin/env python3
"""Writes due-dates.json beside this file. Standard library only; shares no code with the product.

    python3 conformance/due_dates.py

A slow second opinion. It reads the wall clock from zoneinfo at every minute of UTC and takes the first minute that is
open, so that skipped and repeated hours need no rule of their own. Public holidays are written down by hand from the
laws of each jurisdiction, as far as the cases come near them.
"""

import calendar
import json
import pathlib
import re
import zoneinfo
from datetime import date, datetime, timedelta, timezone

HERE = pathlib.Path(__file__).parent
MINUTE = timedelta(minutes=1)
WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

# --- facts -----------------------------------------------------------------------------------------------------------

SATURDAY_SUNDAY = ("saturday", "sunday")
FRIDAY_SATURDAY = ("friday", "saturday")

# The zone where a jurisdiction has exactly one; None: the case must say which.
JURISDICTIONS = {
    "AT": ("Europe/Vienna", SATURDAY_SUNDAY),
    "BR": (None, SATURDAY_SUNDAY),
    "CA-ON": (None, SATURDAY_SUNDAY),
    "CA-QC": (None, SATURDAY_SUNDAY),
    "CH-ZH": ("Europe/Zurich", SATURDAY_SUNDAY),
    "CL": (None, SATURDAY_SUNDAY),
    "DE": ("Europe/Berlin", SATURDAY_SUNDAY),
    "DE-BE": ("Europe/Berlin", SATURDAY_SUNDAY),
    "DE-BY": ("Europe/Berlin", SATURDAY_SUNDAY),
    "EG": ("Africa/Cairo", FRIDAY_SATURDAY),
    "ES": (None, SATURDAY_SUNDAY),
    "FR": ("Europe/Paris", SATURDAY_SUNDAY),
    "GB-ENG": ("Europe/London", SATURDAY_SUNDAY),
    "GB-NIR": ("Europe/Belfast", SATURDAY_SUNDAY),
    "GB-SCT": ("Europe/London", SATURDAY_SUNDAY),
    "IE": ("Europe/Dublin", SATURDAY_SUNDAY),
    "IL": ("Asia/Jerusalem", FRIDAY_SATURDAY),
    "IN": (None, ("sunday",)),
    "IS": ("Atlantic/Reykjavik", SATURDAY_SUNDAY),
    "IT": ("Europe/Rome", SATURDAY_SUNDAY),
    "JP": ("Asia/Tokyo", SATURDAY_SUNDAY),
    "KR": ("Asia/Seoul", SATURDAY_SUNDAY),
    "NL": ("Europe/Amsterdam", SATURDAY_SUNDAY),
    "NO": ("Europe/Oslo", SATURDAY_SUNDAY),
    "NZ": (None, SATURDAY_SUNDAY),
    "PL": ("Europe/Warsaw", SATURDAY_SUNDAY),
    "SA": ("Asia/Riyadh", FRIDAY_SATURDAY),
    "SE": ("Europe/Stockholm", SATURDAY_SUNDAY),
    "SG": ("Asia/Singapore", SATURDAY_SUNDAY),
    "US": (None, SATURDAY_SUNDAY),
    "US-CA": ("America/Los_Angeles", SATURDAY_SUNDAY),
    "ZA": ("Africa/Johannesburg", SATURDAY_SUNDAY),
}

# Substitute days included. A span: only those hours are closed.
HOLIDAYS = {
    "AT": "2027-01-06 2027-10-26 2027-11-01 2027-12-08",
    "BR": "2027-09-07 2027-10-12 2027-11-02 2027-11-15",
    "CA-ON": "2027-02-15 2027-07-01",
    "CA-QC": "2027-06-24 2027-07-01",
    "CH-ZH": "2027-05-06 2027-05-17",
    "CL": "",
    "DE": "2026-12-25 2026-12-26 2027-01-01 2027-03-26 2027-03-29 2027-05-06 2027-05-17 2027-10-03 2027-12-25"
    " 2027-12-26",
    "DE-BE": "2027-03-08 2027-03-26 2027-03-29 2027-05-06 2027-05-17 2027-10-03 2027-12-25 2027-12-26",
    "DE-BY": "2027-01-01 2027-01-06 2027-03-26 2027-03-29 2027-05-06 2027-05-17 2027-05-27 2027-10-03 2027-11-01"
    " 2027-12-25 2027-12-26 2028-01-06",
    "EG": "2027-04-25 2027-05-01 2027-05-03",
    "ES": "2027-01-06 2027-10-12 2027-12-06 2027-12-08",
    "FR": "2027-05-06 2027-05-17 2027-07-14 2027-11-01 2027-11-11",
    "GB-ENG": "2026-12-25 2026-12-28 2027-01-01 2027-03-26 2027-03-29 2027-05-03 2027-05-31 2027-08-30 2027-12-27"
    " 2027-12-28",
    "GB-NIR": "2027-03-17 2027-07-12",
    "GB-SCT": "2027-01-01 2027-01-04 2027-03-26 2027-08-02 2027-11-30",
    "IE": "2027-02-01 2027-03-17 2027-10-25",
    "IL": "2027-10-02 2027-10-03 2027-10-11",
    "IN": "2027-01-26 2027-08-15 2027-10-02",
    "IS": "2027-12-24=13:00-24:00 2027-12-25 2027-12-26 2027-12-31=13:00-24:00 2028-01-01",
    "IT": "2027-06-02 2027-11-01 2027-12-08",
    "JP": "2027-03-22 2027-04-29 2027-05-03 2027-05-04 2027-05-05 2027-09-20 2027-09-23",
    "KR": "2027-02-06 2027-02-07 2027-02-08 2027-02-09",
    "NL": "2027-04-27 2027-05-06",
    "NO": "2027-05-17",
    "NZ": "2027-02-06 2027-02-08 2027-04-26 2027-06-25",
    "PL": "2026-12-24 2026-12-25 2026-12-26 2027-01-01 2027-05-03 2027-05-27",
    "SA": "2027-09-23",
    "SE": "2027-01-06",
    "SG": "2027-02-06 2027-02-07 2027-02-08",
    "US": "2027-01-01 2027-01-18 2027-02-15 2027-05-31 2027-06-18 2027-07-05 2027-09-06 2027-10-11 2027-11-11"
    " 2027-11-25 2027-12-24 2027-12-31 2028-01-17",
    "US-CA": "2027-03-31 2027-11-11 2027-11-25 2027-11-26",
    "ZA": "2027-03-22 2027-04-27 2027-08-09 2027-09-24 2027-12-27",
}

# --- computation -----------------------------------------------------------------------------------------------------


def read_span(text):
    start, end = text.split("-")
    return tuple(int(part[:2]) * 60 + int(part[3:]) for part in (start, end))


def holidays_of(code):
    entries = (entry.partition("=") for entry in HOLIDAYS[code].split())
    return {day: read_span(span or "00:00-24:00") for day, _, span in entries}


def is_open(jurisdiction, rules, day, minute):
    """Whether this minute of a local date is inside opening hours; `rules` is a calendar file of docs/calendars.md."""
    iso, weekday = day.isoformat(), WEEK[day.weekday()]

    def listed(member):
        entries = {entry["date"]: entry for entry in rules.get(member, ())}
        return entries.get(iso) or entries.get(iso[5:])

    def inside(spans):
        return any(start <= minute < end for start, end in map(read_span, spans))

    if listed("closures"):
        return False
    if listed("openings"):
        return inside(listed("openings").get("hours", ["09:00-17:00"]))
    weekend = JURISDICTIONS[jurisdiction][1] if jurisdiction in JURISDICTIONS else ()
    usual = rules.get("hours", {}).get(weekday, [] if weekday in weekend else ["09:00-17:00"])
    if not inside(usual) or (listed("half_days") and not inside(listed("half_days")["hours"])):
        return False
    source = rules.get("holidays_from", jurisdiction)
    start, end = (0, 0) if source == "none" else holidays_of(source).get(iso, (0, 0))
    return not start <= minute < end


def has_hours(jurisdiction, rules, day):
    return any(is_open(jurisdiction, rules, day, minute) for minute in range(1440))


def count_back(jurisdiction, rules, start, period):
    business = re.fullmatch(r"P(\d+)B", period)
    if business:
        day = start
        for _ in range(int(business[1])):
            day -= timedelta(days=1)
            while not has_hours(jurisdiction, rules, day):
                day -= timedelta(days=1)
        return day
    years, months, weeks, days = (
        int(part or 0) for part in re.fullmatch(r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?", period).groups()
    )
    month = start.year * 12 + start.month - 1 - years * 12 - months
    year, month = month // 12, month % 12 + 1
    last = calendar.monthrange(year, month)[1]
    return date(year, month, min(start.day, last)) - timedelta(days=7 * weeks + days)


def start_of(zone, day):
    at = datetime(day.year, day.month, day.day, tzinfo=timezone.utc) - timedelta(hours=16)
    while at.astimezone(zone).date() < day:
        at += MINUTE
    return at


def compute(request, rules):
    code = request["jurisdiction"]
    name = request.get("time_zone") or rules.get("time_zone") or JURISDICTIONS[code][0]
    zone = zoneinfo.ZoneInfo(name)
    renewal = date.fromisoformat(request["renewal_date"])
    at = start_of(zone, count_back(code, rules, renewal, request["notice_period"]))
    while True:
        wall = at.astimezone(zone)
        if is_open(code, rules, wall.date(), wall.hour * 60 + wall.minute):
            break
        at += MINUTE
    if "deadline_at" in request:
        deadline = datetime.fromisoformat(request["deadline_at"].replace("Z", "+00:00"))
    else:
        deadline = start_of(zone, count_back(code, rules, renewal, request.get("deadline", "P0D")))
    return {"time_zone": name, "due_at": rfc3339(at), "deadline_at": rfc3339(deadline)}


def rfc3339(at):
    return at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- cases -----------------------------------------------------------------------------------------------------------

CASES = []


def case(name, jurisdiction, renewal_date, notice_period, due_at=None, calendar=None, **more):
    """`due_at`: where somebody else has published or reasoned out the answer; the computation must agree."""
    request = {"renewal_date": renewal_date, "notice_period": notice_period, "jurisdiction": jurisdiction, **more}
    expect = compute(request, calendar or {})
    assert due_at in (None, expect["due_at"]), (name, due_at, expect)
    CASES.append({"name": name, "request": request, **({"calendar": calendar} if calendar else {}), "expect": expect})


def every_day(*spans, **others):
    return {"holidays_from": "none", "hours": {**{day: list(spans) for day in WEEK}, **others}}


ALWAYS = every_day("00:00-24:00")

# Periods.
case("thirty days over New Year", "DE", "2027-01-23", "P30D", "2026-12-24T08:00:00Z")
case("a notice in days does not snap to the end of the month", "DE-BE", "2027-12-31", "P60D", "2027-11-01T08:00:00Z")
case("All Saints is a holiday in Bavaria", "DE-BY", "2027-12-31", "P60D", "2027-11-02T08:00:00Z")
case(
    "one month before the 31st of March is the last of February", "DE-BY", "2027-03-31", "P1M", "2027-03-01T08:00:00Z",
)
case("months across New Year", "FR", "2027-01-15", "P3M", "2026-10-15T07:00:00Z")
case("months come before days", "DE", "2027-03-31", "P1M15D")
case(
    "twelve months before a leap day", "US", "2028-02-29", "P12M", "2027-03-01T14:00:00Z",
    time_zone="America/New_York",
)
case("a year before a leap day", "GB-ENG", "2028-02-29", "P1Y")
case(
    "twelve months before 28 February", "US", "2029-02-28", "P12M", "2028-02-28T14:00:00Z",
    time_zone="America/New_York",
)
case("two weeks", "DE", "2027-06-15", "P2W")
case("years, months, weeks and days together", "GB-ENG", "2028-09-30", "P1Y1M1W1D")
case("no notice at all", "DE", "2027-08-16", "P0D", deadline_at="2027-08-16T12:00:00Z")
case("one day before a Monday is a Sunday", "DE", "2027-08-16", "P1D", deadline_at="2027-08-17T00:00:00+02:00")
for days, due_at in ((5, "2027-08-09T14:00:00Z"), (10, "2027-08-02T14:00:00Z"), (15, "2027-07-26T14:00:00Z")):
    case(f"{days} business days before a Sunday", "US", "2027-08-15", f"P{days}B", due_at, time_zone="America/Chicago")
case("one business day before a Monday", "DE", "2027-08-16", "P1B")
case("business days pass over Easter", "DE-BY", "2027-04-01", "P4B")
case("business days pass over Christmas and its substitutes", "GB-ENG", "2027-12-31", "P5B")
case("business days where only Sunday is closed", "IN", "2027-08-18", "P5B", time_zone="Asia/Kolkata")
case("business days where Friday and Saturday are closed", "EG", "2027-05-06", "P3B")
case(
    "a Saturday that works counts as a business day", "DE", "2027-06-14", "P2B",
    calendar={"hours": {"saturday": ["09:00-12:00"]}},
)

# Deadlines.
case("a deadline in days", "DE-BY", "2027-03-31", "P30D", deadline="P14D")
case("a deadline in business days", "DE-BY", "2027-04-09", "P60D", deadline="P10B")
case("a deadline in months", "US-CA", "2027-12-31", "P3M", deadline="P1M")
case("a deadline as an instant with an offset", "JP", "2027-09-30", "P1M", deadline_at="2027-09-29T17:30:00+09:00")
case(
    "a deadline that begins on the other side of the clock change", "US", "2027-03-20", "P30D",
    deadline="P3D",
    time_zone="America/New_York",
)
case("a deadline on a date whose midnight is skipped", "EG", "2027-04-30", "P14D")
case(
    "a deadline at the first of two midnights", "24x7", "2027-11-07", "P10D",
    calendar=ALWAYS,
    time_zone="America/Havana",
)

# Holidays, substitutes and weekends.
case("Christmas Eve is a holiday in Poland", "PL", "2027-01-23", "P30D", "2026-12-28T08:00:00Z")
case("Constitution Day in Poland, after a Sunday", "PL", "2027-06-01", "P30D")
case("two substitute days for one weekend", "GB-ENG", "2028-01-26", "P30D", "2027-12-29T09:00:00Z")
case("the substitute for Boxing Day alone", "GB-ENG", "2027-01-25", "P4W")
case("the second day of the year in Scotland", "GB-SCT", "2027-02-03", "P30D")
case("Scotland works on Easter Monday", "GB-SCT", "2027-04-26", "P4W")
case("England does not", "GB-ENG", "2027-04-26", "P4W")
case("the Twelfth in Northern Ireland", "GB-NIR", "2027-08-12", "P1M")
case(
    "New Year of the next year, kept in this one", "US", "2028-01-30", "P30D", "2028-01-03T14:00:00Z",
    time_zone="America/New_York",
)
case("Independence Day on a Sunday", "US", "2027-08-03", "P30D", time_zone="America/Denver")
case("Thanksgiving", "US", "2027-12-25", "P30D", time_zone="America/New_York")
case("the day after Thanksgiving in California", "US-CA", "2027-12-25", "P30D")
case("Cesar Chavez Day in California", "US-CA", "2027-04-30", "P30D")
case("the same day elsewhere in the zone", "US", "2027-04-30", "P30D", time_zone="America/Los_Angeles")
case(
    "Waitangi Day, moved from a Saturday", "NZ", "2027-03-10", "P30D", "2027-02-08T20:00:00Z",
    time_zone="Pacific/Auckland",
)
case("Matariki", "NZ", "2027-07-25", "P30D", time_zone="Pacific/Auckland")
case("Chatham, a quarter of an hour off", "NZ", "2027-07-25", "P1M", time_zone="Pacific/Chatham")
case("Golden Week", "JP", "2027-06-02", "P30D")
case("the substitute for the vernal equinox", "JP", "2027-04-22", "P1M")
case("three days of Seollal and the substitute", "KR", "2027-03-08", "P30D")
case("Lunar New Year, its second day on a Sunday", "SG", "2027-03-09", "P30D")
case("Rosh Hashanah after a weekend of Friday and Saturday", "IL", "2027-11-01", "P30D")
case("Yom Kippur", "IL", "2027-11-10", "P30D")
case("the National Day on a Thursday before the weekend", "SA", "2027-10-23", "P30D")
case("Saturday is a working day in India", "IN", "2027-09-13", "P30D", time_zone="Asia/Kolkata")
case("Republic Day in India", "IN", "2027-02-25", "P30D", time_zone="Asia/Kolkata")
case("Epiphany in Bavaria, a year further", "DE-BY", "2028-02-05", "P30D")
case("Women's Day in Berlin", "DE-BE", "2027-04-07", "P30D")
case("Corpus Christi in Bavaria", "DE-BY", "2027-06-26", "P30D")
case("and not in Berlin", "DE-BE", "2027-06-26", "P30D")
case("the National Day in Austria", "AT", "2027-11-25", "P30D")
case("Ascension in Zurich", "CH-ZH", "2027-06-05", "P30D")
case("Bastille Day", "FR", "2027-08-14", "P1M")
case("the King's Day", "NL", "2027-05-27", "P30D")
case("17 May", "NO", "2027-06-16", "P30D")
case("Epiphany in Sweden", "SE", "2027-02-05", "P30D")
case("Saint Brigid's Day", "IE", "2027-03-01", "P4W")
case("the Republic in Italy", "IT", "2027-07-02", "P1M")
case("the Canaries are an hour behind Madrid", "ES", "2027-11-12", "P1M", time_zone="Atlantic/Canary")
case("Madrid on the same day", "ES", "2027-11-12", "P1M", time_zone="Europe/Madrid")
case("Saint John's Day in Quebec", "CA-QC", "2027-07-24", "P1M", time_zone="America/Toronto")
case("and not in Ontario", "CA-ON", "2027-07-24", "P1M", time_zone="America/Toronto")
case("Independence in Brazil", "BR", "2027-10-07", "P30D", time_zone="America/Sao_Paulo")
case("Women's Day in South Africa", "ZA", "2027-09-09", "P1M")
case("the substitute for the Day of Goodwill", "ZA", "2028-01-26", "P30D")

# The holiday is one of the customer's local date.
case(
    "1 January in Honolulu", "US", "2027-01-31", "P30D",
    time_zone="Pacific/Honolulu",
    calendar={"hours": {"friday": ["09:00-22:00"]}},
)
case("the first to see the day", "24x7", "2027-03-31", "P30D", calendar=ALWAYS, time_zone="Pacific/Kiritimati")
case("three quarters of an hour", "24x7", "2027-03-31", "P30D", calendar=ALWAYS, time_zone="Asia/Kathmandu")
case("half an hour, with summer time", "24x7", "2027-07-31", "P30D", calendar=ALWAYS, time_zone="America/St_Johns")

# Days on which the clock changes.
case(
    "calendar days, not hours", "24x7", "2027-04-08", "P30D", "2027-03-09T05:00:00Z",
    calendar=ALWAYS,
    time_zone="America/New_York",
)
case("a weekend day without a midnight", "EG", "2027-05-30", "P30D", "2027-05-02T06:00:00Z")
case("no midnight in Beirut", "24x7", "2027-04-27", "P30D", calendar=ALWAYS, time_zone="Asia/Beirut")
case("no midnight in Santiago", "24x7", "2027-10-05", "P30D", calendar=ALWAYS, time_zone="America/Santiago")
case(
    "in Santiago 23:00 comes twice, before midnight", "24x7", "2027-05-04", "P30D",
    calendar=ALWAYS,
    time_zone="America/Santiago",
)
case(
    "two midnights in Havana", "24x7", "2027-12-07", "P30D", "2027-11-07T04:00:00Z",
    calendar=ALWAYS,
    time_zone="America/Havana",
)
case(
    "a date that Samoa skipped", "24x7", "2012-01-29", "P30D", "2011-12-30T10:00:00Z",
    calendar=ALWAYS,
    time_zone="Pacific/Apia",
)
case(
    "01:30 twice in London", "late", "2027-11-30", "P30D", "2027-10-31T00:30:00Z",
    calendar=every_day("00:00-24:00", sunday=["01:30-24:00"]),
    time_zone="Europe/London",
)
case(
    "01:30 never in London", "late", "2027-04-27", "P30D", "2027-03-28T01:00:00Z",
    calendar=every_day("00:00-24:00", sunday=["01:30-24:00"]),
    time_zone="Europe/London",
)
case(
    "02:30 never in New York", "late", "2027-04-13", "P30D",
    calendar=every_day("00:00-24:00", sunday=["02:30-24:00"]),
    time_zone="America/New_York",
)
case(
    "01:30 twice in New York", "late", "2027-12-07", "P30D",
    calendar=every_day("00:00-24:00", sunday=["01:30-24:00"]),
    time_zone="America/New_York",
)
case(
    "01:45 twice on Lord Howe, half an hour apart", "late", "2027-05-04", "P30D",
    calendar=every_day("00:00-24:00", sunday=["01:45-24:00"]),
    time_zone="Australia/Lord_Howe",
)
case(
    "02:15 never on Lord Howe", "late", "2027-11-02", "P30D",
    calendar=every_day("00:00-24:00", sunday=["02:15-24:00"]),
    time_zone="Australia/Lord_Howe",
)
case(
    "two hours are skipped at Troll", "late", "2027-04-27", "P30D",
    calendar=every_day("00:00-24:00", sunday=["01:30-24:00"]),
    time_zone="Antarctica/Troll",
)
case(
    "an opening that lies in the skipped hour is none", "late", "2027-04-27", "P30D",
    calendar=every_day("09:00-17:00", sunday=["02:10-02:50"]),
    time_zone="Europe/Berlin",
)
case(
    "an opening that the skipped hour cuts short", "late", "2027-04-27", "P30D",
    calendar=every_day("09:00-17:00", sunday=["02:10-03:20"]),
    time_zone="Europe/Berlin",
)

# Hours of one's own.
HALF = {"half_days": [{"date": "12-24", "hours": ["10:00-12:00"], "reason": "Christmas Eve"}]}
case("a half day opens later", "DE", "2028-01-23", "P30D", calendar=HALF)
case(
    "a half day leaves what both have in common", "DE", "2028-01-23", "P30D",
    calendar={**HALF, "hours": {"friday": ["08:00-10:30", "11:00-15:00"]}},
)
case(
    "a half day outside of the usual hours is closed", "DE", "2028-01-23", "P30D",
    calendar={**HALF, "hours": {"friday": ["13:00-18:00"]}},
)
case(
    "a half day on a holiday stays closed", "DE-BY", "2027-12-01", "P30D",
    calendar={"half_days": [{"date": "2027-11-01", "hours": ["09:00-12:00"], "reason": "none"}]},
)
case("Christmas Eve in Iceland, until one", "IS", "2028-01-23", "P30D")
case(
    "and for those who open at two not at all", "IS", "2028-01-23", "P30D",
    calendar={"hours": {"friday": ["14:00-20:00"]}},
)
case("an early closing holiday is a business day", "IS", "2028-01-03", "P1B", deadline="P0D")
case(
    "a working Saturday", "DE", "2027-11-08", "P30D",
    calendar={"openings": [{"date": "2027-10-09", "reason": "stock-taking"}]},
)
case(
    "an opening on a holiday", "FR", "2027-12-01", "P30D",
    calendar={"openings": [{"date": "2027-11-01", "hours": ["10:00-12:00"], "reason": "agreed"}]},
)
case(
    "a closure", "DE", "2027-09-15", "P30D",
    calendar={"closures": [{"date": "2027-08-16", "reason": "moving house"}]},
)
case(
    "two closures in a row before a weekend", "DE", "2027-06-19", "P30D",
    calendar={"closures": [{"date": "2027-05-20", "reason": "x"}, {"date": "05-21", "reason": "x"}]},
)
case("a lunch break", "DE", "2027-09-15", "P30D", calendar={"hours": {"monday": ["10:15-12:00", "13:00-17:00"]}})
case(
    "holidays of one jurisdiction, a name of one's own", "acme", "2027-12-01", "P30D",
    calendar={**every_day("08:00-18:00"), "holidays_from": "DE-BY", "time_zone": "Europe/Berlin"},
)
case(
    "a day that opens at midnight is not rounded", "acme", "2027-09-15", "P30D",
    calendar=every_day("00:00-06:00"),
    time_zone="Asia/Tokyo",
)

TZ = (pathlib.Path(zoneinfo.TZPATH[0]) / "tzdata.zi").read_text().split("\n", 1)[0].removeprefix("# version ")
text = json.dumps(
    {
        "description": "When a reminder is due and until when: the rules of docs/calendars.md. `calendar` is a "
        "calendar file for the jurisdiction of the request; without it, public holidays close the whole day or the hours of "
        "`holidays`, other days but the weekend are open from 09:00 to 17:00. `holidays` lists those that the cases "
        "come near, not all.",
        "time_zone_data": TZ,
        "weekends": {code: weekend for code, (_, weekend) in JURISDICTIONS.items()},
        "holidays": {code: HOLIDAYS[code].split() for code in HOLIDAYS},
        "cases": CASES,
    },
    ensure_ascii=True,
    indent=2,
)
(HERE / "due-dates.json").write_text(text + "\n")
print(len(CASES), "cases")
