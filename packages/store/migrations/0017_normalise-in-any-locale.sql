-- In a database with an ICU locale, digits of other scripts counted as those of a phone number, and with a Turkish one,
-- an I in an e-mail address became a letter that is not ASCII.

-- Up Migration

create or replace function booking_phone(value text) returns text
language sql immutable parallel safe
return substring(
  regexp_replace(regexp_replace(value, '\(0\)|[\s().\-/]', '', 'g'), '^00', '+') from '^\+[1-9][0-9]{6,14}$'
);

create or replace function booking_language(value text) returns text
language sql immutable parallel safe
return case
  when value collate "C" ~* '^[a-z]{2,3}([-_][a-z]{4})?([-_]([a-z]{2}|[0-9]{3}))?$' then (
    select string_agg(
      case when place = 1 then lower(part) when length(part) = 4 then initcap(part) else upper(part) end, '-'
      order by place
    )
    from regexp_split_to_table(value collate "C", '[-_]') with ordinality as parts (part, place)
  )
end;

create or replace function booking_email(value text) returns text
language sql immutable parallel safe
return case when btrim(value) ~ '^[^@\s]+@[^@\s]+$' then lower(btrim(value) collate "C") end;
