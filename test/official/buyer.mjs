// Buyers built from the official packages that one of the subfolders passes in. Settings come as JSON in the first
// argument, `{ rpc, network }`. Then each line of standard input is one purchase, `{ id, url, secret, method?, json?,
// identifier? }`, all made concurrently, and each answer is one line: every HTTP response of the purchase, the last
// one's body, and the receipt that the official client decodes. A line `{ id, paymentRequired, secret }` signs a
// payment and sends it nowhere. Ends when standard input ends. The packages are used as published.
import { createInterface } from "node:readline"

export const runBuyer = async (set) => {
  const { rpc, network } = JSON.parse(process.argv[2] ?? "{}")

  const clientOf = (secret) => {
    const signer = set.createEd25519Signer(secret, network)
    const client = new set.x402Client().register(network, new set.StellarScheme(signer, { url: rpc }))
    client.setSpendControls?.(false)
    return client
  }

  const purchase = async ({ identifier, json, method, secret, url }) => {
    const client = clientOf(secret)
    if (identifier !== undefined) {
      client.onAfterPaymentCreation(async ({ paymentPayload }) => {
        set.appendPaymentIdentifierToExtensions(paymentPayload.extensions ?? {}, identifier)
      })
    }
    const responses = []
    const watchedFetch = async (request) => {
      const response = await fetch(request)
      responses.push({
        status: response.status,
        paymentSignature: request.headers.get("payment-signature") ?? undefined,
        paymentRequired: decode(response.headers.get("payment-required")),
        paymentResponse: decode(response.headers.get("payment-response"))
      })
      return response
    }
    const pay = set.wrapFetchWithPayment(watchedFetch, client)
    const started = performance.now()
    const response = await pay(url, {
      method: method ?? "GET",
      ...(json === undefined ? {} : { body: JSON.stringify(json), headers: { "content-type": "application/json" } })
    })
    const body = await response.text()
    const http = new set.x402HTTPClient(client)
    const receipt = response.headers.has("payment-response")
      ? http.getPaymentSettleResponse((name) => response.headers.get(name))
      : undefined
    return { responses, status: response.status, body, receipt, milliseconds: Math.round(performance.now() - started) }
  }

  const sign = async ({ paymentRequired, secret }) => ({
    paymentPayload: await clientOf(secret).createPaymentPayload(paymentRequired)
  })

  console.log(JSON.stringify({ ready: true }))
  const open = new Set()
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line)
    const work = (request.url === undefined ? sign(request) : purchase(request))
      .catch((error) => ({ error: String(error?.stack ?? error) }))
      .then((answer) => console.log(JSON.stringify({ id: request.id, ...answer })))
    open.add(work)
    work.finally(() => open.delete(work))
  }
  await Promise.all(open)
  process.exit(0)
}

const decode = (header) => (header === null ? undefined : JSON.parse(Buffer.from(header, "base64").toString("utf8")))
