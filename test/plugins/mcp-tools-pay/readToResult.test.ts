import { describe, expect, it } from "@effect/vitest"
import { toJsonEnd, toRpcAnswer } from "../../../plugins/mcp-tools-pay/seller/readToResult.ts"

const events = { status: 200, headers: { "content-type": "text/event-stream; charset=utf-8" } }
const json = { status: 200, headers: { "content-type": "application/json" } }
const bytes = (text: string) => new TextEncoder().encode(text)
const answer = '{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"a \\"brace\\" }] é"}]}}'

/** The number of bytes after which reading ends, with chunks of `size`; -1 when it does not. */
const endOf = (reader: ReturnType<typeof toJsonEnd>, text: string, size: number): number => {
  const all = bytes(text)
  for (let at = 0; at < all.length; at += size)
    if (reader!(all.subarray(at, at + size))) return Math.min(at + size, all.length)
  return -1
}

describe("a seller's response", () => {
  it("an event stream ends at the response's event, however it is split", () => {
    const streams: ReadonlyArray<readonly [string, string]> = [
      ["alone", `data: ${answer}`],
      ["with a name, an id and a comment", `: hello\nevent: message\nid: 7\ndata: ${answer}`],
      [
        "after a notification and another's answer",
        `data: {"method":"x"}\n\ndata: {"id":9,"result":{}}\n\ndata: ${answer}`
      ],
      ["with carriage returns", `event: message\r\ndata: {"id":9,"result":{}}\r\n\r\ndata:${answer}`],
      ["behind a byte order mark", `\ufeffdata: ${answer}`],
      ["after a priming event and a ping", `id: 0\ndata: \n\nevent: ping\ndata: now\n\ndata: ${answer}`],
      ["with lines that end in either way", `data: {"method":"x"}\n\r\ndata: ${answer}`],
      ["over two lines", `data: ${answer.replace(',"result"', '\ndata: ,"result"')}`]
    ]
    for (const [what, stream] of streams)
      for (const size of [1, 3, 7, 4_096]) {
        const wanted = bytes(stream).length
        const more = `${stream}\n\n: still here\n\ndata: {"id":5}\n\n`
        const found = endOf(toRpcAnswer(4)(events), size === 4_096 ? stream : more, size)
        expect([what, size, found >= wanted && found < wanted + size]).toEqual([what, size, true])
      }
  })

  it("a partial, textual or foreign result does not end the stream", () => {
    for (const stream of [
      `data: ${answer.slice(0, -1)}\n\n: still here\n\n`,
      `data: ${JSON.stringify({ id: 3, result: { text: answer } })}\n\n`,
      `: ${answer}\n\n`,
      `event: ${answer}\n\n`,
      "data:1\n\n".repeat(100)
    ])
      expect(endOf(toRpcAnswer(4)(events), stream, 5)).toBe(-1)
  })

  it("texts after an event's JSON are not parsed again with all before them", () => {
    const reader = toRpcAnswer(4)(events)!
    const first = bytes("{}")
    expect([bytes("data:"), first].map(reader)).toEqual([false, false])
    // What came first is not read again: now it is blank, and the text after it would be an answer.
    first.fill(0x20)
    expect(reader(bytes(answer))).toBe(false)
    expect(reader(bytes(`\n\ndata: ${answer}`))).toBe(true)
  })

  it("a JSON response ends at its closing bracket or its declared length", () => {
    expect(endOf(toJsonEnd(json), `${answer}   `, 1)).toBe(bytes(answer).length)
    expect(endOf(toRpcAnswer(4)(json), `${answer}   `, 1)).toBe(bytes(answer).length)
    // More may follow: another document, or only blanks.
    const reader = toJsonEnd(json)!
    expect(["[1]", "\n", '{"a":', "2}", "3"].map((text) => reader(bytes(text)))).toEqual([
      "pause",
      "pause",
      false,
      "pause",
      false
    ])
    expect(endOf(toJsonEnd(json), answer.slice(0, -1), 1)).toBe(-1)
    expect(endOf(toJsonEnd(json), '"a \\" }"\n', 1)).toBe(8)
    for (const type of ["application/json-seq", "application/jsonlines", "application/x-ndjson"])
      expect(toJsonEnd({ ...json, headers: { "content-type": type } })).toBe(undefined)
    expect(toJsonEnd({ ...json, headers: { ...json.headers, "content-length": "9" } })).toBe(undefined)
    expect(toJsonEnd({ ...json, headers: { ...json.headers, "content-encoding": "gzip" } })).toBe(undefined)
    expect(toJsonEnd(events)).toBe(undefined)
  })
})
