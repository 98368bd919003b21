// A DNS server on this machine. By default it answers names with `good` in them, by one IPv4 address, and no others.
import { Effect } from "effect"
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { isIPv4 } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"

/** The addresses of a name, of both families, and how late they come; undefined: silence. */
export type Names = (
  name: string,
  family: 4 | 6
) => { readonly addresses: ReadonlyArray<string>; readonly lateMillis?: number } | undefined

const goodNames =
  (address: string): Names =>
  (name) =>
    name.includes("good") ? { addresses: [address] } : undefined

/** An IPv6 address without an embedded IPv4 one, as bytes. */
const bytesOfV6 = (address: string): Buffer => {
  const [left = "", right] = address.split("::")
  const groups = (half: string) => half.split(":").filter((group) => group !== "")
  const tail = groups(right ?? "")
  const zeros = Array.from({ length: 8 - groups(left).length - tail.length }, () => "0")
  return Buffer.from([...groups(left), ...zeros, ...tail].map((group) => group.padStart(4, "0")).join(""), "hex")
}

/** An answer to a question's message; without addresses of the family it is empty. */
const answerTo = (message: Buffer, end: number, family: 4 | 6, addresses: ReadonlyArray<string>): Buffer => {
  const head = Buffer.from(message.subarray(0, 12))
  const mine = addresses.filter((address) => isIPv4(address) === (family === 4))
  head.set([0x81, 0x80, 0, 1, 0, mine.length, 0, 0, 0, 0], 2)
  const records = mine.map((address) => {
    const bytes = family === 4 ? Buffer.from(address.split(".").map(Number)) : bytesOfV6(address)
    return Buffer.concat([Buffer.from([0xc0, 12, 0, family === 4 ? 1 : 28, 0, 1, 0, 0, 0, 0, 0, bytes.length]), bytes])
  })
  return Buffer.concat([head, message.subarray(12, end), ...records])
}

/** An answer with TXT records, each in strings of at most 255 bytes. */
const textAnswer = (message: Buffer, end: number, texts: ReadonlyArray<string>): Buffer => {
  const head = Buffer.from(message.subarray(0, 12))
  head.set([0x81, 0x80, 0, 1, 0, texts.length, 0, 0, 0, 0], 2)
  const records = texts.map((text) => {
    const strings = (text.match(/.{1,255}/g) ?? [""]).map((part) => Buffer.from([part.length, ...Buffer.from(part)]))
    const bytes = Buffer.concat(strings)
    const { length } = bytes
    return Buffer.concat([Buffer.from([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, length >> 8, length & 255]), bytes])
  })
  return Buffer.concat([head, message.subarray(12, end), ...records])
}

/** The name of a question; its labels begin at byte 12. */
const nameOf = (message: Buffer, end: number): string => {
  const labels: Array<string> = []
  for (let at = 12; at < end - 5; at += message[at]! + 1)
    labels.push(message.toString("latin1", at + 1, at + 1 + message[at]!))
  return labels.join(".").toLowerCase()
}

/** Serves for the lifetime of the Scope; `asked` has the text of each question. Texts: undefined is silence. */
export const startNameServer = (
  of: string | Names = "203.0.113.9",
  textsOf: (name: string) => ReadonlyArray<string> | undefined = () => undefined
) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const names = typeof of === "string" ? goodNames(of) : of
      const socket = createSocket("udp4")
      const asked: Array<string> = []
      let isOpen = true
      socket.on("message", async (message, peer) => {
        asked.push(message.toString("latin1"))
        const end = message.indexOf(0, 12) + 5
        const texts = message[end - 3] === 16 ? textsOf(nameOf(message, end)) : undefined
        if (texts !== undefined) socket.send(textAnswer(message, end, texts), peer.port, peer.address)
        if (message[end - 3] === 16) return
        const family = message[end - 3] === 1 ? 4 : 6
        const found = names(nameOf(message, end), family)
        if (found === undefined) return
        if (found.lateMillis !== undefined) await sleep(found.lateMillis)
        if (isOpen) socket.send(answerTo(message, end, family, found.addresses), peer.port, peer.address)
      })
      socket.bind(0, "127.0.0.1")
      await once(socket, "listening")
      const close = () => {
        isOpen = false
        socket.close()
      }
      return { asked, close, at: `127.0.0.1:${socket.address().port}` }
    }),
    ({ close }) => Effect.sync(close)
  )

/** How many names have been asked for that match. */
export const namesAsked = (asked: ReadonlyArray<string>, name: RegExp): number =>
  new Set(asked.map((text) => name.exec(text)?.[0]).filter(Boolean)).size
