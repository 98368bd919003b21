// Reads one HTTP/1.1 response from raw bytes, as far as its seller's framing allows, because we paid for the answer. It
// accepts heads of any length, bare line feeds, repeated lengths and unknown lines. Bytes without readable framing
// become an unchanged body, marked as malformed. A body that is longer than declared extends to the end of the
// connection. Bytes come in any parts. Pure.

interface ResponseHead {
  readonly status: number
  /** Names in lower case; several values of one name are joined by commas. */
  readonly headers: Readonly<Record<string, string>>
}

interface ResponseSink {
  readonly head: (head: ResponseHead) => void
  readonly body: (bytes: Buffer) => void
  /** The body has its declared length. More of it may come until the connection ends. */
  readonly complete: () => void
  /** `isWhole`: the body ended as its framing declares. */
  readonly end: (isWhole: boolean) => void
}

/** `raw`: unreadable framing; the body extends to the end of the connection. */
type Framing = "chunked" | "close" | "raw" | { left: number }

/** Maximum bytes of a head, and of all interim heads before it (100 to 199). */
const headMax = 262_144
/** Maximum bytes of a chunk's size line with its extensions. */
const sizeLineMax = 8_192

const readHead = (text: string): ResponseHead | undefined => {
  const [first = "", ...lines] = text.split(/\r?\n/)
  const status = /^HTTP\/\d(?:\.\d)? +(\d{3})(?: |$)/i.exec(first)?.[1]
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
  if (status === 204 || status === 304) return { left: 0 }
  if (/(^|,)\s*chunked\s*$/i.test(headers["transfer-encoding"] ?? "")) return "chunked"
  const lengths = new Set((headers["content-length"] ?? "").split(",").map((one) => one.trim()))
  const [length = ""] = lengths
  // Ignores contradicting lengths; the body then extends to the end of the connection.
  return lengths.size === 1 && /^\d{1,15}$/.test(length) ? { left: Number(length) } : "close"
}

const isBlank = (bytes: Buffer) => bytes.every((byte) => byte === 0x0d || byte === 0x0a || byte === 0x20)

export class ResponseReader {
  readonly #sink: ResponseSink
  /** Bytes of the head already searched for its end. */
  #searched = 0
  #interimBytes = 0
  #waiting: Buffer = Buffer.alloc(0)
  #framing: Framing | undefined
  /** In a chunked body: bytes left of this chunk, or the next part to read. */
  #chunk: number | "size" | "after" | "trailers" = "size"
  #isEnded = false

  constructor(sink: ResponseSink) {
    this.#sink = sink
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

  close(): void {
    if (this.#isEnded) return
    if (this.#framing === undefined) this.#unframed()
    const framing = this.#framing
    const isComplete = typeof framing === "object" && framing.left === 0
    const isWhole = isComplete || framing === "close" || (framing === "chunked" && this.#chunk === "trailers")
    if (!isComplete) this.#pass(this.#waiting.length)
    this.#end(isWhole)
  }

  /** One step; false when it needs more bytes. */
  #step(): boolean {
    if (this.#framing === undefined) return this.#readHead()
    if (this.#framing === "chunked") return this.#readChunk()
    if (this.#waiting.length === 0) return false
    if (typeof this.#framing === "object") return this.#readSized(this.#framing)
    this.#pass(this.#waiting.length)
    return false
  }

  #readSized(framing: { left: number }): boolean {
    if (framing.left > 0) {
      const taken = Math.min(framing.left, this.#waiting.length)
      framing.left -= taken
      this.#pass(taken)
      if (framing.left === 0) this.#sink.complete()
      return framing.left === 0
    }
    // A line end after the body is not more of it.
    if (this.#waiting.length <= sizeLineMax && isBlank(this.#waiting)) return false
    this.#framing = "close"
    return true
  }

  #readHead(): boolean {
    while (this.#waiting[0] === 0x0d || this.#waiting[0] === 0x0a) this.#waiting = this.#waiting.subarray(1)
    const bytes = this.#waiting
    const end = this.#headEnd()
    if (end === undefined) {
      const begins = bytes.subarray(0, 5).toString("latin1")
      if (bytes.length <= headMax && "HTTP/".startsWith(begins.toUpperCase())) return false
      this.#unframed()
      return true
    }
    const head = readHead(bytes.subarray(0, end).toString("latin1").trimEnd())
    if (head === undefined) {
      this.#unframed()
      return true
    }
    this.#waiting = bytes.subarray(end)
    this.#searched = 0
    if (head.status >= 100 && head.status < 200 && head.status !== 101) {
      this.#interimBytes += end
      if (this.#interimBytes > headMax) this.#unframed()
      return true
    }
    this.#framing = framingOf(head)
    this.#sink.head(head)
    if (typeof this.#framing === "object" && this.#framing.left === 0) this.#sink.complete()
    return true
  }

  /** The position after the head's empty line; each byte is searched once. */
  #headEnd(): number | undefined {
    const bytes = this.#waiting
    for (let at = bytes.indexOf(0x0a, this.#searched); at >= 0; at = bytes.indexOf(0x0a, at + 1)) {
      const next = bytes[at + 1] === 0x0d ? at + 2 : at + 1
      if (bytes[next] === 0x0a) return next + 1
      if (next >= bytes.length) {
        this.#searched = at
        return undefined
      }
    }
    this.#searched = bytes.length
    return undefined
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
      if (this.#waiting.length <= sizeLineMax) return false
      this.#framing = "raw"
      return true
    }
    const line = this.#waiting.subarray(0, newline).toString("latin1").trim()
    if (this.#chunk === "size") {
      const size = /^([0-9a-f]{1,12})(?:\s*;.*)?$/i.exec(line)?.[1]
      if (size === undefined) {
        this.#framing = "raw"
        return true
      }
      this.#chunk = parseInt(size, 16) === 0 ? "trailers" : parseInt(size, 16)
    } else if (this.#chunk === "after" && line !== "") {
      this.#framing = "raw"
      return true
    } else if (this.#chunk === "after") this.#chunk = "size"
    else if (line === "") this.#end(true)
    this.#waiting = this.#waiting.subarray(newline + 1)
    return true
  }

  #pass(length: number): void {
    if (length > 0) this.#sink.body(this.#waiting.subarray(0, length))
    this.#waiting = this.#waiting.subarray(length)
  }

  /** There is no response head, so all bytes are the body. */
  #unframed(): void {
    this.#framing = "raw"
    this.#sink.head({ status: 0, headers: {} })
  }

  #end(isWhole: boolean): void {
    this.#isEnded = true
    this.#sink.end(isWhole)
  }
}
