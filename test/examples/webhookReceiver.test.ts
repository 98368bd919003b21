// The example receiver of webhooks at a connection that fails: a sender that goes away ends no other message, and a
// character that arrives in two parts is one character.
import { createHmac } from "node:crypto"
import { once } from "node:events"
import { connect } from "node:net"
import process from "node:process"
import { expect, it } from "vitest"
import { type Event, startReceiver } from "../../examples/webhook-receiver.ts"

const secret = "the secret of one receiver"

/** A signed message as bytes on a connection, and where its body begins. */
const messageOf = (event: object) => {
  const body = Buffer.from(JSON.stringify(event))
  const [id, time] = ["message-1", String(Math.floor(Date.now() / 1_000))]
  const signature = createHmac("sha256", secret).update(`${id}.${time}.${body}`).digest("base64")
  const lines = [
    "POST / HTTP/1.1",
    "host: receiver",
    "connection: close",
    `content-length: ${body.length}`,
    `webhook-id: ${id}`,
    `webhook-timestamp: ${time}`,
    `webhook-signature: v1,${signature}`
  ]
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`)
  return { bytes: Buffer.concat([head, body]), bodyAt: head.length }
}

it("handles one whole message after others that broke off", async () => {
  const events: Array<Event> = []
  const rejected: Array<unknown> = []
  const note = (error: unknown) => void rejected.push(error)
  process.on("unhandledRejection", note)
  const { server, url } = await startReceiver(secret, (event) => events.push(event))
  const open = async () => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1")
    await once(socket, "connect")
    return socket
  }
  const event = {
    type: "settlement.failed",
    timestamp: "",
    data: { status: "failed", transaction: "é", errorMessage: "" }
  }
  const { bodyAt, bytes } = messageOf(event)
  const cut = await open()
  cut.write(bytes.subarray(0, bodyAt + 10), () => cut.resetAndDestroy())
  await once(cut, "close")
  const whole = await open()
  const within = bytes.indexOf(Buffer.from("é")) + 1
  whole.write(bytes.subarray(0, within))
  await new Promise((resolve) => setTimeout(resolve, 100))
  whole.write(bytes.subarray(within))
  const [answer] = await once(whole, "data")
  expect(String(answer)).toMatch(/^HTTP\/1.1 204/)
  expect(events).toEqual([event])
  expect(rejected).toEqual([])
  process.off("unhandledRejection", note)
  server.close()
})
