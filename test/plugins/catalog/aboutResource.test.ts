// The words of a seller: what is left out, and what reaches the listing.
import { expect, it } from "vitest"
import { droppedFields, readAbout } from "../../../plugins/catalog/declaration/aboutResource.ts"
import {
  cleanJson,
  cleanLine,
  cleanString,
  isSmooth,
  measureJson
} from "../../../plugins/catalog/declaration/cleanText.ts"

it("reads each field by itself, and leaves an unusable one out", () => {
  const whole = {
    description: "Weather of a city",
    mimeType: "application/json",
    serviceName: "Weather",
    tags: ["weather", "city"],
    iconUrl: "https://shop.example.com/icon.png"
  }
  expect(readAbout(whole)).toEqual(whole)
  expect(droppedFields(whole)).toEqual([])
  for (const field of Object.keys(whole)) {
    const { [field as "tags"]: _, ...others } = whole
    for (const value of [undefined, null, 7, {}, ""]) expect(readAbout({ ...whole, [field]: value })).toEqual(others)
  }
  expect(readAbout({})).toEqual({})
})

it("writes a description on one line of at most 4,000 characters", () => {
  const read = (description: string) => readAbout({ description })["description"]
  expect(read("  two\n lines\t")).toBe("two lines")
  expect(read(" \n ")).toBeUndefined()
  expect(read("x".repeat(4_000))).toHaveLength(4_000)
  expect(read("x".repeat(4_001))).toHaveLength(4_000)
})

it("accepts a media type with parameters, in lower case", () => {
  const read = (mimeType: string) => readAbout({ mimeType })["mimeType"]
  expect(read("Text/HTML; charset=UTF-8")).toBe("text/html; charset=utf-8")
  for (const wrong of ["text", "text/", "text/html;", "text/<b>", `a/${"b".repeat(127)}`])
    expect(read(wrong)).toBeUndefined()
  expect(read(`a/${"b".repeat(126)}`)).toHaveLength(128)
})

it("limits names and tags to 32 printable characters", () => {
  const name = "n".repeat(32)
  expect(readAbout({ serviceName: ` ${name.slice(2)} ` })).toEqual({ serviceName: name.slice(2) })
  for (const serviceName of [`${name}n`, "naïve", "a\nb", 7, "  "]) {
    expect(readAbout({ serviceName })).toEqual({})
    expect(droppedFields({ serviceName })).toEqual(["serviceName"])
  }
  expect(droppedFields({ serviceName: "" })).toEqual([])
  expect(readAbout({ tags: ["A", "a", 7, "b", "c", "d", "e", "f"] })).toEqual({ tags: ["A", "b", "c", "d", "e"] })
  expect(droppedFields({ tags: ["A", 7] })).toEqual(["tags"])
  expect(droppedFields({ tags: "a" })).toEqual(["tags"])
  expect(droppedFields({ tags: ["A", ""] })).toEqual([])
  expect(readAbout({ tags: [7, ""] })).toEqual({})
})

it("accepts an icon on a public host alone", () => {
  const read = (iconUrl: string) => readAbout({ iconUrl })["iconUrl"]
  expect(read("HTTP://Shop.example.com/i.png")).toBe("http://shop.example.com/i.png")
  const wrong = [
    "javascript:alert(1)",
    "data:image/png;base64,AA==",
    "https://user@shop.example.com/i.png",
    "https://:word@shop.example.com/i.png",
    "https://127.0.0.1/i.png",
    "https://[::1]/i.png",
    "https://localhost/i.png",
    "https://shop.example.com/\u202ei.png",
    "no URL",
    `https://shop.example.com/${"i".repeat(2_048)}`
  ]
  for (const iconUrl of wrong) {
    expect(read(iconUrl), iconUrl).toBeUndefined()
    expect(droppedFields({ iconUrl })).toEqual(["iconUrl"])
  }
  expect(droppedFields({ iconUrl: "" })).toEqual([])
  expect(read(`https://a.example.com/${"i".repeat(2_026)}`)).toHaveLength(2_048)
})

it("removes sequences and characters that hide or reorder text", () => {
  expect(cleanString("plain\ttext\n")).toBe("plain\ttext\n")
  expect(cleanString("a\u001b[31mred\u001b[0m\u001b]0;title\u0007b")).toBe("aredb")
  expect(cleanString("a\r\nb\rc\u2028d")).toBe("a\nb\nc\nd")
  expect(cleanString("a\u202eb\u200bc\u00add\ufeffe\u{e0041}f\u{1fffe}g\u0000h")).toBe("abcdefgh")
  expect(cleanString("\ud800é")).toBe("é")
  expect(cleanString("e\u0301")).toBe("é")
  // The neighbors of hidden characters stay.
  expect(cleanString("\u00ac\u00ae\u2010\u2029")).toBe("\u00ac\u00ae\u2010\n")
  expect([isSmooth("shop/é"), isSmooth("a b"), isSmooth("a\u200bb")]).toEqual([true, false, false])
  expect(cleanLine("ab cd", 3)).toBe("ab")
  expect(cleanLine("😀😀😀", 2)).toBe("😀😀")
})

it("cleans every string of a JSON value, its keys included", () => {
  const sent = JSON.parse('{"a\\u200b":["x\\u202e",1,null,true],"a":2,"__proto__":{"b":1},"c":{"d":"\\u0000"}}')
  const cleaned = cleanJson(sent) as object
  expect(cleaned).toEqual({ a: ["x", 1, null, true], c: { d: "" } })
  expect(Object.getPrototypeOf(cleaned)).toBe(Object.prototype)
})

it("measures levels and values of a JSON value up to its bounds", () => {
  const nested = { a: { b: [1] } }
  expect(measureJson(nested, 3, 4)).toEqual({ tooDeep: false, tooMany: false })
  expect(measureJson(nested, 2, 4)).toMatchObject({ tooDeep: true })
  expect(measureJson(nested, 3, 3)).toMatchObject({ tooMany: true })
  expect(measureJson([null, "x"], 1, 3)).toEqual({ tooDeep: false, tooMany: false })
  expect(measureJson(7, 0, 1)).toEqual({ tooDeep: false, tooMany: false })
})
