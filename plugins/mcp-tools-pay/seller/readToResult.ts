// Reads a seller's answer only as far as needed, since a server may leave its connection open after the complete
// result. JSON ends with its outermost bracket or its text, unless more of it follows within a moment: a stream of
// documents may be labeled as JSON. In an event stream, the event that answers the request is the last one read. All
// this applies only to answers that do not declare their own length. The body of a paid resource is read to its own end
// or until its timeout, and then checked for a complete document. Pure.
import { Result } from "effect"
import { readJson } from "../../../kernel/http/BoundedJson.ts"
import { joinBytes } from "../../../kernel/stellar/joinBytes.ts"
import type { AnswerHead, BodyReader } from "../../../kernel/platform/Outbound.ts"
import { findAnswer } from "./SellerWire.ts"

const [quote, backslash, newline, carriage] = [0x22, 0x5c, 0x0a, 0x0d]
const openers = new Set([0x7b, 0x5b])
const closers = new Set([0x7d, 0x5d])

/** Tracks brackets and strings of JSON, byte by byte, without its grammar. */
class JsonEnd {
  #depth = 0
  #isString = false
  #isEscaped = false

  /** True for the byte that closes the outermost object, array or text. */
  next(byte: number): boolean {
    if (this.#isEscaped) this.#isEscaped = false
    else if (this.#isString) {
      if (byte === backslash) this.#isEscaped = true
      if (byte === quote) this.#isString = false
      return byte === quote && this.#depth === 0
    } else if (byte === quote) this.#isString = true
    else if (openers.has(byte)) this.#depth += 1
    else if (closers.has(byte)) return --this.#depth === 0
    return false
  }
}

/** True for the chunk that ends the body's JSON. */
const jsonReader = () => {
  const end = new JsonEnd()
  return (chunk: Uint8Array): boolean => chunk.some((byte) => end.next(byte))
}

/** True if the outermost bracket closes. The JSON may exceed a bound. */
export const closesJson = (bytes: Uint8Array): boolean => jsonReader()(bytes)

/** Returns `pause` for a chunk that ends a document and leaves none open. */
const documentsReader = () => {
  const end = new JsonEnd()
  let isEnded = false
  return (chunk: Uint8Array): false | "pause" => {
    for (const byte of chunk) isEnded = end.next(byte) || (isEnded && byte <= 0x20)
    return isEnded ? "pause" : false
  }
}

/** For an answer that may be paid content: wider than for any other. */
export const answerBounds = { depthMax: 1_000, valuesMax: 1_000_000, keys: "any" } as const
const byteOrderMark = [0xef, 0xbb, 0xbf]
/** Removes the byte order mark, which is not part of JSON. */
export const withoutMark = (bytes: Uint8Array): Uint8Array =>
  byteOrderMark.every((byte, at) => bytes[at] === byte) ? bytes.subarray(byteOrderMark.length) : bytes

const dataPrefix = new TextEncoder().encode("data:")

/** The data of the current event, in parts as received. */
class EventData {
  #parts: Array<Uint8Array> = []
  #end = new JsonEnd()
  #isEnded = false

  /**
   * Takes data up to the end of its JSON; true if it ends here. An event has one JSON text: a seller could have each of
   * thousands parsed together with all before it.
   */
  take(bytes: Uint8Array): boolean {
    if (this.#isEnded) return false
    const at = bytes.findIndex((byte) => this.#end.next(byte))
    this.#parts.push(at < 0 ? bytes : bytes.subarray(0, at + 1))
    this.#isEnded = at >= 0
    return this.#isEnded
  }

  get value(): unknown {
    return Result.getOrUndefined(readJson(joinBytes(this.#parts), answerBounds))
  }
}

/** True for the chunk that completes the answer to the request `id`. */
const eventReader = (id: number) => {
  let event = new EventData()
  /** Bytes of the field name read in this line; -1 in a line without data. */
  let column = 0
  let wasCarriage = false
  /** Bytes of a leading byte order mark read so far; its full length once any other byte came. */
  let marked = 0

  const endLine = () => {
    if (column === 0) event = new EventData()
    column = 0
  }
  const isNewline = (byte: number) => byte === newline || byte === carriage
  /** True if `bytes`, a line's data or its beginning, complete the answer. */
  const endsIn = (bytes: Uint8Array): boolean => {
    if (!event.take(bytes)) return false
    const { value } = event
    return value !== undefined && findAnswer([value], id) !== undefined
  }

  return (chunk: Uint8Array): boolean => {
    let at = 0
    while (at < chunk.length) {
      const byte = chunk[at]!
      if (marked < byteOrderMark.length) {
        const isMark = byte === byteOrderMark[marked]
        marked = isMark ? marked + 1 : byteOrderMark.length
        if (isMark) {
          at += 1
          continue
        }
      }
      if (isNewline(byte)) {
        if (byte === carriage || !wasCarriage) endLine()
        wasCarriage = byte === carriage
        at += 1
        continue
      }
      wasCarriage = false
      if (column === dataPrefix.length) {
        const length = chunk.subarray(at).findIndex(isNewline)
        const data = length < 0 ? chunk.subarray(at) : chunk.subarray(at, at + length)
        if (endsIn(data)) return true
        at += data.length
      } else {
        if (column >= 0) column = byte === dataPrefix[column] ? column + 1 : -1
        at += 1
      }
    }
    return false
  }
}

const isSized = ({ headers }: AnswerHead) => headers["content-length"] !== undefined
const isPlain = ({ headers }: AnswerHead) => headers["content-encoding"] === undefined
const isJson = ({ headers }: AnswerHead) =>
  /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(headers["content-type"] ?? "")
const isEvents = ({ headers }: AnswerHead) => /^text\/event-stream\b/i.test(headers["content-type"] ?? "")

const isOpenJson = (head: AnswerHead) => isJson(head) && isPlain(head) && !isSized(head)

/** For an unpaid JSON resource. */
export const toJsonEnd: BodyReader = (head) => (isOpenJson(head) ? documentsReader() : undefined)

/** True if the part of a body that came before its connection broke or timed out is a complete JSON document. */
export const isWholeJson = (head: AnswerHead, body: Uint8Array): boolean =>
  toJsonEnd(head)?.(body) === "pause" && Result.isSuccess(readJson(withoutMark(body), answerBounds))

/** For the answer to one JSON-RPC request. */
export const toRpcAnswer =
  (id: number): BodyReader =>
  (head) =>
    isEvents(head) && isPlain(head) && !isSized(head) ? eventReader(id) : isOpenJson(head) ? jsonReader() : undefined
