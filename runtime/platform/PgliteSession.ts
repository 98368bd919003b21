// One virtual connection to the embedded database. PGlite has a single session; several connections of the SQL driver
// share it by turns. A connection owns the session from its first message until the backend reports that it is idle
// again. The messages of two connections thus never interleave, not even between Parse and Sync, and a transaction
// keeps the session to its end. If a connection closes inside a transaction, the transaction is rolled back.
// Notifications go to every connection.

/** The part of PGlite that is used here. */
interface ProtocolDatabase {
  readonly execProtocolRawStream: (
    message: Uint8Array,
    options: { readonly onRawData: (data: Uint8Array) => void }
  ) => Promise<void>
  readonly exec: (sql: string) => Promise<unknown>
}

/** Grants the session to one owner; the others wait in order of arrival. */
export class SessionGate {
  private owner: object | undefined
  private readonly waiting: Array<{ readonly caller: object; readonly enter: () => void }> = []

  enter(party: object): Promise<void> {
    if (this.owner === undefined) this.owner = party
    if (this.owner === party) return Promise.resolve()
    return new Promise((enter) => this.waiting.push({ caller: party, enter }))
  }

  leave(party: object): void {
    if (this.owner !== party) return
    const next = this.waiting.shift()
    this.owner = next?.caller
    next?.enter()
  }
}

const concat = (a: Uint8Array, b: Uint8Array): Uint8Array => {
  if (a.length === 0) return b
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}

const lengthAt = (bytes: Uint8Array, at: number): number => new DataView(bytes.buffer, bytes.byteOffset).getInt32(at)

const code = (letter: string): number => letter.charCodeAt(0)

/** Frontend messages after which the backend answers: Query, Sync, Flush, password, FunctionCall. */
const flushing = new Set(["Q", "S", "H", "p", "F"].map(code))
const terminate = code("X")
const notification = code("A")
const readyForQuery = code("Z")
const idle = code("I")
const sslRequest = 80_877_103
const cancelRequest = 80_877_102

export class PgliteSession {
  private incoming: Uint8Array = new Uint8Array(0)
  private outgoing: Uint8Array = new Uint8Array(0)
  private started = false
  private status = idle
  private closed = false
  private work: Promise<void> = Promise.resolve()
  private readonly database: ProtocolDatabase
  private readonly gate: SessionGate
  private readonly peers: Set<PgliteSession>
  private readonly send: (bytes: Uint8Array) => void

  constructor(
    database: ProtocolDatabase,
    gate: SessionGate,
    peers: Set<PgliteSession>,
    send: (bytes: Uint8Array) => void
  ) {
    this.database = database
    this.gate = gate
    this.peers = peers
    this.send = send
    peers.add(this)
  }

  /** Takes bytes of the driver; whole batches are executed in order. */
  receive(bytes: Uint8Array): void {
    this.incoming = concat(this.incoming, bytes)
    for (let batch = this.takeBatch(); batch !== undefined; batch = this.takeBatch()) {
      const whole = batch
      this.work = this.work.then(() => this.execute(whole))
    }
  }

  /** Closes the connection: rolls back an open transaction and releases the session. Resolves when that is done. */
  close(): Promise<void> {
    if (this.closed) return this.work
    this.closed = true
    this.peers.delete(this)
    this.work = this.work.then(async () => {
      if (this.status !== idle) {
        await this.gate.enter(this)
        await this.database.exec("rollback").catch(() => undefined)
        this.status = idle
      }
      this.gate.leave(this)
    })
    return this.work
  }

  /** The messages up to and including one that the backend answers; undefined while none is complete. */
  private takeBatch(): Uint8Array | undefined {
    if (!this.started) return this.takeStartup()
    let at = 0
    while (this.incoming.length - at >= 5) {
      const end = at + 1 + lengthAt(this.incoming, at + 1)
      if (this.incoming.length < end) return undefined
      const type = this.incoming[at]!
      if (type === terminate) {
        void this.close()
        return undefined
      }
      at = end
      if (flushing.has(type)) {
        const batch = this.incoming.slice(0, at)
        this.incoming = this.incoming.slice(at)
        return batch
      }
    }
    return undefined
  }

  private takeStartup(): Uint8Array | undefined {
    if (this.incoming.length < 8) return undefined
    const length = lengthAt(this.incoming, 0)
    if (this.incoming.length < length) return undefined
    const message = this.incoming.slice(0, length)
    this.incoming = this.incoming.slice(length)
    if (lengthAt(message, 4) === cancelRequest) {
      // PGlite cannot cancel; the requesting connection is closed.
      void this.close()
      return undefined
    }
    if (lengthAt(message, 4) === sslRequest) {
      this.send(new Uint8Array([code("N")]))
      return this.takeStartup()
    }
    this.started = true
    return message
  }

  private async execute(batch: Uint8Array): Promise<void> {
    if (this.closed) return
    await this.gate.enter(this)
    try {
      await this.database.execProtocolRawStream(batch, { onRawData: (data) => this.deliver(data) })
    } finally {
      if (this.status === idle) this.gate.leave(this)
    }
  }

  /** Passes on whole backend messages, noting the transaction status and copying notifications to the peers. */
  private deliver(data: Uint8Array): void {
    const bytes = concat(this.outgoing, data.slice())
    let at = 0
    while (bytes.length - at >= 5) {
      const end = at + 1 + lengthAt(bytes, at + 1)
      if (bytes.length < end) break
      if (bytes[at] === readyForQuery) this.status = bytes[at + 5]!
      if (bytes[at] === notification) {
        for (const peer of this.peers) if (peer !== this && peer.started) peer.send(bytes.slice(at, end))
      }
      at = end
    }
    this.outgoing = bytes.slice(at)
    if (at > 0 && !this.closed) this.send(bytes.slice(0, at))
  }
}
