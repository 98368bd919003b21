// A paid response is read in parts of any size and in any framing.
import { expect, it } from "vitest"
import { ResponseReader } from "../../../runtime/platform/ResponseReader.ts"

/** The result of reading a response in parts of `size` bytes. */
const read = (text: string, size: number) => {
  let [status, body, isWhole] = [-1, "", undefined as boolean | undefined]
  const headers: Record<string, string> = {}
  const reader = new ResponseReader({
    head: (head) => {
      status = head.status
      Object.assign(headers, head.headers)
    },
    body: (bytes) => void (body += bytes.toString("latin1")),
    complete: () => {},
    end: (whole) => void (isWhole = whole)
  })
  const bytes = Buffer.from(text, "latin1")
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size))
  reader.close()
  return { status, headers, body, isWhole }
}

const cases: ReadonlyArray<readonly [string, string, number, string, boolean]> = [
  ["a length", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello\r\n", 200, "hello", true],
  ["more than the length", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello, more", 200, "hello, more", true],
  ["a body of a status without one", "HTTP/1.1 204 No Content\r\n\r\nhello", 204, "hello", true],
  ["a line before the head", "\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", true],
  ["a protocol in lower case", "http/1.1 200 ok\r\n\r\nhello", 200, "hello", true],
  ["no length", "HTTP/1.1 200 OK\r\n\r\nhello", 200, "hello", true],
  ["bare line feeds", "HTTP/1.1 200 OK\nx: 1\n\nhello", 200, "hello", true],
  ["a length twice", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", true],
  ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\nhello", 200, "hello", true],
  [
    "chunks",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x\r\nhe\r\n3\r\nllo\r\n0\r\nt: 1\r\n\r\n",
    200,
    "hello",
    true
  ],
  ["chunks with line feeds", "HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n5\nhello\n0\n\n", 200, "hello", true],
  [
    "a chunk of no size",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\nllo\r\n",
    200,
    "hello\r\n",
    false
  ],
  ["an end too early", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello", 200, "hello", false],
  ["interim heads", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx", 200, "x", true],
  ["no body", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true],
  ["no head", "17 degrees\r\n\r\nand no head", 0, "17 degrees\r\n\r\nand no head", false],
  ["half a head", "HTTP/1.1 200 OK\r\nx: 1", 0, "HTTP/1.1 200 OK\r\nx: 1", false]
]

it("reads a response in parts of any size", () => {
  for (const [what, text, status, body, isWhole] of cases)
    for (const size of [1, 2, 3, 7, 1_000])
      expect([what, size, read(text, size)]).toMatchObject([what, size, { status, body, isWhole }])
})

it("ends the interim heads that it takes", () => {
  const hint = `HTTP/1.1 103 Early Hints\r\nlink: ${"l".repeat(1_000)}\r\n\r\n`
  const final = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx"
  expect(read(hint.repeat(200) + final, 1_460).status).toBe(200)
  expect(read(hint.repeat(2_000), 1_460)).toMatchObject({ status: 0, isWhole: false })
})

it("joins repeated headers and skips lines that are none", () => {
  const text = `HTTP/1.1 200\r\nA: 1\r\nno header\r\na: 2\r\nlong: ${"v".repeat(100_000)}\r\n\r\n`
  const { headers } = read(text, 1_460)
  expect([headers["a"], headers["long"]?.length]).toEqual(["1, 2", 100_000])
})
