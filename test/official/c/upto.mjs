// A metered seller and its buyers, from the official packages of this folder and the example's two schemes. The handler
// sets the used amount with the package's own `setSettlementOverrides`, in raw units. Settings come as JSON in the
// first argument, `{ facilitator, rpc, payTo, network, asset, max }`; each line of standard input, `{ id, secret, used
// }`, is one purchase, and each answer is one line. Ends when standard input ends.
import { HTTPFacilitatorClient } from "@x402/core/server"
import { paymentMiddleware, setSettlementOverrides, x402ResourceServer } from "@x402/express"
import { wrapFetchWithPayment, x402Client, x402HTTPClient } from "@x402/fetch"
import express from "express"
import { createInterface } from "node:readline"
import { UptoStellarClient, UptoStellarServer } from "../../../examples/upto.ts"

const { asset, facilitator, max, network, payTo, rpc } = JSON.parse(process.argv[2] ?? "{}")

const server = new x402ResourceServer(new HTTPFacilitatorClient({ url: facilitator })).register(
  network,
  new UptoStellarServer()
)
const routes = {
  "GET /metered": {
    accepts: { scheme: "upto", network, price: { amount: max, asset }, payTo, maxTimeoutSeconds: 60 },
    description: "A page that costs what was used",
    mimeType: "application/json"
  }
}
const app = express()
app.use(paymentMiddleware(routes, server))
app.get("/metered", (request, response) => {
  if (request.query.used !== undefined) setSettlementOverrides(response, { amount: String(request.query.used) })
  response.json({ used: request.query.used ?? "all" })
})

const purchase = async (url, { secret, used }) => {
  const client = new x402Client().register(network, new UptoStellarClient({ secret, rpcUrl: rpc }))
  client.setSpendControls?.(false)
  const response = await wrapFetchWithPayment(
    fetch,
    client
  )(`${url}/metered${used === undefined ? "" : `?used=${used}`}`)
  const receipt = response.headers.has("payment-response")
    ? new x402HTTPClient(client).getPaymentSettleResponse((name) => response.headers.get(name))
    : undefined
  return { status: response.status, body: await response.text(), receipt }
}

const listener = app.listen(0, "127.0.0.1", async () => {
  const url = `http://127.0.0.1:${listener.address().port}`
  console.log(JSON.stringify({ url }))
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, ...request } = JSON.parse(line)
    const answer = await purchase(url, request).catch((error) => ({ error: String(error?.stack ?? error) }))
    console.log(JSON.stringify({ id, ...answer }))
  }
  process.exit(0)
})
