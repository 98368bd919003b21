// A DNS server on this machine that answers names with `good` in them, by one IPv4 address, and no other name.
import { Effect } from "effect"
import { createSocket } from "node:dgram"
import { once } from "node:events"

/** Serves for the lifetime of the Scope; `asked` has the text of each question. */
export const startNameServer = (address = "203.0.113.9") =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const socket = createSocket("udp4")
      const asked: Array<string> = []
      socket.on("message", (message, peer) => {
        const text = message.toString("latin1")
        asked.push(text)
        if (!text.includes("good")) return
        const end = message.indexOf(0, 12) + 5
        const head = Buffer.from(message.subarray(0, 12))
        head.set([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0], 2)
        const isV4 = message[end - 3] === 1
        if (!isV4) head[7] = 0
        const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split(".").map(Number)])
        const whole = Buffer.concat([head, message.subarray(12, end), isV4 ? answer : Buffer.alloc(0)])
        socket.send(whole, peer.port, peer.address)
      })
      socket.bind(0, "127.0.0.1")
      await once(socket, "listening")
      return { asked, close: () => socket.close(), at: `127.0.0.1:${socket.address().port}` }
    }),
    ({ close }) => Effect.sync(close)
  )

/** How many names have been asked for that match. */
export const namesAsked = (asked: ReadonlyArray<string>, name: RegExp): number =>
  new Set(asked.map((text) => name.exec(text)?.[0]).filter(Boolean)).size
