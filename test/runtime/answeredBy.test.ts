// The database that a command names on stderr: no part of its password.
import { Option, Redacted } from "effect"
import { expect, it } from "vitest"
import { describeDatabase } from "../../runtime/answeredBy.ts"

const described = (url: string) =>
  describeDatabase({ tree: {}, secret: () => Option.some(Redacted.make(url)) }, "/state")

it.each([
  ["postgres://user:secret@db.example:6432/pay", "database pay at db.example:6432"],
  ["postgres://user:12/secret@db.example/pay", "the server of DATABASE_URL"],
  ["postgres://user:12?secret@db.example/pay", "the server of DATABASE_URL"],
  ["postgres://user:12#secret@db.example/pay", "the server of DATABASE_URL"],
  ["postgres://user:sec/ret@db.example/pay", "the server of DATABASE_URL"],
  ["postgres://user:sec@ret@db.example/pay", "database pay at db.example"]
])("of %s it shows: %s", (url, shown) => {
  expect(described(url)).toBe(shown)
})
