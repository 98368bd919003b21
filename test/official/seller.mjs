// An express seller built from the official packages that one of the subfolders passes in. It takes its settings as
// JSON in its first argument, `{ facilitator, payTo, network, apiKey? }`, listens on a free port, prints one line
// `{"url": …}` when it serves, and ends when its standard input ends. The packages are used as published.
import { memoryStore, soldOnce } from "../../examples/seller/soldOnce.mjs"

/** Pages that are computed once and released as often as their payment asks: `soldOnce` around the same packages. */
const sellKept = (set, app, { facilitator, network, accepts }) => {
  const { facilitator: keeping, middleware } = soldOnce({ store: memoryStore() })
  const server = new set.x402ResourceServer(keeping(facilitator)).register(network, new set.StellarScheme())
  const routes = { "GET /kept": { accepts, description: "Kept" }, "GET /other": { accepts, description: "Other" } }
  app.use(middleware(set.paymentMiddleware(routes, server)))
  let computed = 0
  for (const page of ["kept", "other"])
    app.get(`/${page}`, (_, response) => response.json({ page, computed: ++computed }))
}

/** A paid tool behind JSON-RPC as in MCP: `_meta` has the payment; the packages verify and settle around the call. */
const sellTool = (app, server, accepts) => {
  const answer = (response, id, result) => response.json({ jsonrpc: "2.0", id, result })
  app.post("/mcp", async (request, response) => {
    const { id, params } = request.body
    await server.initialize()
    const [requirements] = await server.buildPaymentRequirements(accepts)
    const payment = params._meta?.["x402/payment"]
    const refuse = (error) => {
      const required = { x402Version: 2, error, resource: { url: "mcp://tool/report" }, accepts: [requirements] }
      answer(response, id, { isError: true, structuredContent: required, content: [] })
    }
    if (payment === undefined) return refuse("payment required")
    const verified = await server.verifyPayment(payment, requirements)
    if (!verified.isValid) return refuse(verified.invalidReason)
    await new Promise((resolve) => setTimeout(resolve, params.arguments.milliseconds))
    const settled = await server.settlePayment(payment, requirements)
    if (!settled.success) return refuse(settled.errorReason)
    answer(response, id, {
      content: [{ type: "text", text: "a report" }],
      _meta: { "x402/payment-response": settled }
    })
  })
}

export const runSeller = async (set) => {
  const settings = JSON.parse(process.argv[2] ?? "{}")
  const { network, payTo } = settings
  const headers = settings.apiKey === undefined ? {} : { authorization: `Bearer ${settings.apiKey}` }
  const facilitator = new set.HTTPFacilitatorClient({
    url: settings.facilitator,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers, bazaar: headers })
  })
  const server = new set.x402ResourceServer(facilitator)
    .register(network, new set.StellarScheme())
    .registerExtension(set.bazaarResourceServerExtension)
    .registerExtension(set.paymentIdentifierResourceServerExtension)

  const accepts = { scheme: "exact", network, price: "$0.001", payTo }
  const routes = {
    "GET /plain": { accepts, description: "A plain page" },
    "GET /weather": {
      accepts: { ...accepts, maxTimeoutSeconds: 60 },
      description: "Weather of a city",
      mimeType: "application/json",
      extensions: set.declareDiscoveryExtension({
        input: { city: "Riga" },
        inputSchema: { properties: { city: { type: "string", description: "Name of the city" } }, required: ["city"] },
        output: { example: { city: "Riga", celsius: 17 } }
      })
    },
    "GET /users/:id": {
      accepts,
      description: "One user by number",
      extensions: set.declareDiscoveryExtension({
        pathParamsSchema: { properties: { id: { type: "string" } }, required: ["id"] },
        output: { example: { id: "7" } }
      })
    },
    "POST /report": {
      accepts,
      description: "A report about a company",
      extensions: set.declareDiscoveryExtension({
        input: { company: "Acme" },
        inputSchema: { properties: { company: { type: "string" } }, required: ["company"] },
        bodyType: "json",
        output: { example: { pages: 3 } }
      })
    },
    "GET /order": {
      accepts,
      description: "A page whose payment may carry an identifier",
      extensions: { "payment-identifier": set.declarePaymentIdentifierExtension(false) }
    }
  }

  // For packages with this flow: settled before the handler, and never verified.
  if (set.hasUpfront === true)
    routes["GET /upfront"] = {
      accepts: { ...accepts, extra: { paymentFlow: "upfront" } },
      description: "A page that is settled before it is made"
    }

  const app = set.express()
  app.use(set.express.json())
  sellKept(set, app, { facilitator, network, accepts })
  sellTool(app, server, accepts)
  app.use(set.paymentMiddleware(routes, server))
  app.get("/plain", (_, response) => response.json({ page: "plain" }))
  app.get("/weather", (request, response) => response.json({ city: request.query.city, celsius: 17 }))
  app.get("/users/:id", (request, response) => response.json({ id: request.params.id }))
  app.post("/report", (request, response) => response.json({ company: request.body?.company, pages: 3 }))
  app.get("/upfront", (_, response) => response.json({ page: "upfront" }))
  app.get("/order", (_, response) => response.json({ page: "order" }))

  const listener = app.listen(0, "127.0.0.1", () => {
    console.log(JSON.stringify({ url: `http://127.0.0.1:${listener.address().port}` }))
  })
  process.stdin.resume()
  process.stdin.on("end", () => process.exit(0))
}
