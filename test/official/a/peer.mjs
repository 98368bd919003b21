// The official facilitator class behind HTTP, for comparisons. Settings as JSON in the first argument: `{ rpc, secrets,
// feeSecret?, network, port? }`: `secrets` are the settlement accounts, taken in turn, and `feeSecret` pays a fee bump.
// Prints one line `{"url": …}` when it serves; ends when its standard input ends. A fault inside the class is answered
// with status 500, as the official sample does.
import { x402Facilitator } from "@x402/core/facilitator"
import { createEd25519Signer } from "@x402/stellar"
import { ExactStellarScheme } from "@x402/stellar/exact/facilitator"
import express from "express"

const settings = JSON.parse(process.argv[2] ?? "{}")
const { network } = settings
const facilitator = new x402Facilitator().register(
  network,
  new ExactStellarScheme(
    settings.secrets.map((secret) => createEd25519Signer(secret, network)),
    {
      rpcConfig: { url: settings.rpc },
      maxTransactionFeeStroops: settings.maxTransactionFeeStroops ?? 200_000,
      ...(settings.feeSecret === undefined ? {} : { feeBumpSigner: createEd25519Signer(settings.feeSecret, network) })
    }
  )
)

const app = express()
app.use(express.json({ limit: "256kb" }))
app.get("/health", (_, response) => response.json({ status: "ok" }))
app.get("/supported", (_, response) => response.json(facilitator.getSupported()))
const answer =
  (decide) =>
  async ({ body }, response) => {
    try {
      response.json(await decide(body.paymentPayload, body.paymentRequirements))
    } catch (error) {
      response.status(500).json({ error: String(error) })
    }
  }
app.post(
  "/verify",
  answer((payload, requirements) => facilitator.verify(payload, requirements))
)
app.post(
  "/settle",
  answer((payload, requirements) => facilitator.settle(payload, requirements))
)

const listener = app.listen(settings.port ?? 0, "127.0.0.1", () => {
  console.log(JSON.stringify({ url: `http://127.0.0.1:${listener.address().port}` }))
})
process.stdin.resume()
process.stdin.on("end", () => process.exit(0))
