// Reads one HTTP/1.1 response from raw bytes, as far as its seller frames it: an answer that was paid for is worth more
// than the rules. Heads of any length, bare line feeds, repeated lengths and unknown lines are read; what cannot be
// framed is body, as it came, and called malformed. Bytes come in any parts. Pure.

export interface ResponseHead {
  readonly status: number
  /** Names in lower case; several values of one name are joined by commas. */
  readonly headers: Readonly<Record<string, string>>
}

export interface ResponseSink {
  readonly head: (head: ResponseHead) => void
  readonly body: (bytes: Buffer) => void
  /** `isWhole`: it ended where its framing says. */
  readonly end: (isWhole: boolean) => void
}

type Framing = "none" | "chunked" | "close" | { left: number }

const headEnd = /\r?\n\r?\n/
/** Of a chunk's size and its extensions. */
const sizeLineMax = 8_192

const readHead = (text: string): ResponseHead | undefined => {
  const [first = "", ...lines] = text.split(/\r?\n/)
  const status = /^HTTP\/\d(?:\.\d)? +(\d{3})(?: |$)/.exec(first)?.[1]
  if (status === undefined) return undefined
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name, value = ""] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    if (name === undefined) continue
    const key = name.toLowerCase()
    const before = Object.hasOwn(headers, key) ? headers[key] : undefined
    headers[key] = before === undefined ? value : `${before}, ${value}`
  }
  return { status: Number(status), headers }
}

const framingOf = ({ headers, status }: ResponseHead): Framing => {
  if (status === 204 || status === 304) return "none"
  if (/(^|,)\s*chunked\s*$/i.test(headers["transfer-encoding"] ?? "")) return "chunked"
  const lengths = new Set((headers["content-length"] ?? "").split(",").map((one) => one.trim()))
  const [length = ""] = lengths
  // Lengths that differ say nothing: the connection's end does.
  return lengths.size === 1 && /^\d{1,15}$/.test(length) ? { left: Number(length) } : "close"
}

export class ResponseReader {
  readonly #sink: ResponseSink
  readonly #headMax: number
  #waiting: Buffer = Buffer.alloc(0)
  #framing: Framing | undefined
  /** Of chunks: bytes left of this one, or what is read next. */
  #chunk: number | "size" | "after" | "trailers" = "size"
  #isEnded = false

  constructor(sink: ResponseSink, headMax: number) {
    this.#sink = sink
    this.#headMax = headMax
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  push(bytes: Buffer): void {
    if (this.#isEnded) return
    this.#waiting = this.#waiting.length === 0 ? bytes : Buffer.concat([this.#waiting, bytes])
    while (!this.#isEnded && this.#step()) {
      /* until more bytes are needed */
    }
  }

  /** The connection has ended. */
  close(): void {
    if (this.#isEnded) return
    if (this.#framing === undefined) return this.#unframed()
    const isWhole = this.#framing === "close" || (this.#framing === "chunked" && this.#chunk === "trailers")
    this.#pass(this.#waiting.length)
    this.#end(isWhole)
  }

  /** One step; false when it needs more bytes. */
  #step(): boolean {
    if (this.#framing === undefined) return this.#readHead()
    if (this.#framing === "chunked") return this.#readChunk()
    if (this.#waiting.length === 0) return false
    if (typeof this.#framing !== "object") {
      this.#pass(this.#waiting.length)
      return false
    }
    const taken = Math.min(this.#framing.left, this.#waiting.length)
    this.#framing.left -= taken
    this.#pass(taken)
    if (this.#framing.left === 0) this.#end(true)
    return false
  }

  #readHead(): boolean {
    const text = this.#waiting.toString("latin1")
    const found = headEnd.exec(text)
    if (found === null) {
      if (text.length > this.#headMax || (text.length > 5 && !text.startsWith("HTTP/"))) this.#unframed()
      return false
    }
    const head = readHead(text.slice(0, found.index))
    if (head === undefined) {
      this.#unframed()
      return false
    }
    this.#waiting = this.#waiting.subarray(found.index + found[0].length)
    if (head.status >= 100 && head.status < 200 && head.status !== 101) return true
    this.#framing = framingOf(head)
    this.#sink.head(head)
    if (this.#framing === "none" || (typeof this.#framing === "object" && this.#framing.left === 0)) this.#end(true)
    return true
  }

  #readChunk(): boolean {
    if (this.#waiting.length === 0) return false
    if (typeof this.#chunk === "number") {
      const taken = Math.min(this.#chunk, this.#waiting.length)
      this.#chunk -= taken
      this.#pass(taken)
      if (this.#chunk === 0) this.#chunk = "after"
      return true
    }
    const newline = this.#waiting.indexOf(0x0a)
    if (newline < 0) {
      if (this.#waiting.length > sizeLineMax) this.#broken()
      return false
    }
    const line = this.#waiting.subarray(0, newline).toString("latin1").trim()
    if (this.#chunk === "size") {
      const size = /^([0-9a-f]{1,12})(?:\s*;.*)?$/i.exec(line)?.[1]
      if (size === undefined) {
        this.#broken()
        return false
      }
      this.#chunk = parseInt(size, 16) === 0 ? "trailers" : parseInt(size, 16)
    } else if (this.#chunk === "after" && line !== "") {
      this.#broken()
      return false
    } else if (this.#chunk === "after") this.#chunk = "size"
    else if (line === "") this.#end(true)
    this.#waiting = this.#waiting.subarray(newline + 1)
    return true
  }

  #pass(length: number): void {
    if (length > 0) this.#sink.body(this.#waiting.subarray(0, length))
    this.#waiting = this.#waiting.subarray(length)
  }

  /** No head of a response: what arrives is what there is. */
  #unframed(): void {
    this.#sink.head({ status: 0, headers: {} })
    this.#broken()
  }

  /** The rest, as it came; more of it comes until the connection ends, and is not waited for. */
  #broken(): void {
    this.#pass(this.#waiting.length)
    this.#end(false)
  }

  #end(isWhole: boolean): void {
    this.#isEnded = true
    this.#sink.end(isWhole)
  }
}
