// The sellers of the matrix: one page for a fixed price at /weather and one by use at /story, by each framework that is
// installed here. Missing frameworks are listed with the reason.
import { spawn, spawnSync } from "node:child_process"
import { createServer } from "node:http"
import { createRequire } from "node:module"
import { join } from "node:path"
import { makeSell, priced, toFastify, toKoa, toNode } from "../../examples/seller/sellRequest.mjs"
import { memoryStore } from "../../examples/seller/soldOnce.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { installSet } from "./officialSet.ts"
import { root } from "./world.ts"

export interface ReachSeller {
  readonly name: string
  readonly url: string
  readonly stop: () => Promise<void>
  /** Default both. */
  readonly schemes?: ReadonlyArray<"exact" | "upto">
}

export interface SellerNeeds {
  readonly facilitator: string
  readonly payTo: string
  /** `extra` of the facilitator's upto. */
  readonly uptoExtra: unknown
}

const require = createRequire(join(root, "package.json"))
const frameworks = createRequire(join(root, "test/official/frameworks/package.json"))
const story = "Once a traveller came to a river and asked the ferryman what it costs to cross".split(" ")
export const weatherPrice = 10_000n
export const wordPrice = 1_000n

/** The two pages as functions of a Request, which every framework below uses. */
const pagesOf = ({ facilitator, payTo, uptoExtra }: SellerNeeds) => {
  const shared = { facilitator, payTo, asset: testnetUsdc, maxTimeoutSeconds: 300, store: memoryStore() }
  const sellWeather = makeSell({ ...shared, amount: String(weatherPrice), description: "Weather of a city" })
  const sellStory = makeSell({
    ...shared,
    scheme: "upto",
    amount: "15000",
    extra: uptoExtra,
    description: "By the word"
  })
  let made = 0
  const weather = (request: Request) =>
    sellWeather(request, ({ url }) => ({ city: new URL(url).searchParams.get("city") ?? "Riga", made: ++made }))
  const words = (request: Request) =>
    sellStory(request, ({ url }) => {
      const count = Number(new URL(url).searchParams.get("words") ?? 5)
      return priced({ story: story.slice(0, count).join(" ") }, String(BigInt(count) * wordPrice))
    })
  return { weather, words }
}

type Answer = (request: Request) => Promise<Response> | Response

const listen = async (name: string, handler: (...given: any) => void): Promise<ReachSeller> => {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    name,
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

const byPath =
  ({ weather, words }: ReturnType<typeof pagesOf>): Answer =>
  (request) => {
    const { pathname } = new URL(request.url)
    return pathname === "/weather"
      ? weather(request)
      : pathname === "/story"
        ? words(request)
        : new Response("", { status: 404 })
  }
const served = (answer: Answer) => toNode(async (request) => answer(request))

const byExpress = (needs: SellerNeeds) => {
  const app = require("express")()
  const { weather, words } = pagesOf(needs)
  app.get("/weather", toNode(weather))
  app.get("/story", toNode(words))
  app.post("/report", require("express").json(), toNode(report))
  return listen("Express", app)
}

/** A page that returns the body of its request, behind a parser that has already read the body. */
const report = async (request: Request) => Response.json({ asked: await request.json() })
/** Sellers with that page. */
export const reporters = ["Express", "Fastify", "Koa", "Elysia"]

const byFastify = async (needs: SellerNeeds): Promise<ReachSeller> => {
  const app = frameworks("fastify")({ forceCloseConnections: true })
  const { weather, words } = pagesOf(needs)
  app.get("/weather", toFastify(weather))
  app.get("/story", toFastify(words))
  app.post("/report", toFastify(report))
  return { name: "Fastify", url: await app.listen({ port: 0, host: "127.0.0.1" }), stop: () => app.close() }
}

const byKoa = (needs: SellerNeeds) => {
  const { weather, words } = pagesOf(needs)
  const routes: Record<string, ReturnType<typeof toKoa>> = {
    "/weather": toKoa(weather),
    "/story": toKoa(words),
    "/report": toKoa(report)
  }
  const app = new (frameworks("koa"))()
  app.use(async (context: any) => routes[context.path]?.(context))
  return listen("Koa", app.callback())
}

const byHono = async (needs: SellerNeeds) => {
  const { Hono } = await import(require.resolve("hono").replace("/cjs/", "/"))
  const { weather, words } = pagesOf(needs)
  const app = new Hono()
  app.get("/weather", (context: any) => weather(context.req.raw))
  app.get("/story", (context: any) => words(context.req.raw))
  return listen(
    "Hono",
    served((request) => app.fetch(request))
  )
}

const byElysia = (needs: SellerNeeds) => {
  const { Elysia } = frameworks("elysia")
  const { weather, words } = pagesOf(needs)
  const app = new Elysia()
    .get("/weather", ({ request }: any) => weather(request))
    .get("/story", ({ request }: any) => words(request))
    .post("/report", ({ request }: any) => report(request), { parse: "none" })
  return listen(
    "Elysia",
    served((request) => app.handle(request))
  )
}

/** Route handlers as `app/weather/route.js` exports them, called as the app router calls them; Next is not run. */
const byRouteHandlers = (needs: SellerNeeds) => {
  const { weather, words } = pagesOf(needs)
  const routes: Record<string, { readonly GET: Answer }> = { "/weather": { GET: weather }, "/story": { GET: words } }
  const route: Answer = (request) =>
    routes[new URL(request.url).pathname]?.GET(request) ?? new Response("", { status: 404 })
  return listen("Next handlers", served(route))
}

const byWorker = (needs: SellerNeeds) => {
  const worker = { fetch: byPath(pagesOf(needs)) }
  return listen(
    "fetch handler",
    served((request) => worker.fetch(request))
  )
}

const python = ["/usr/bin/python3", "python3"].find((one) => spawnSync(one, ["-c", "import cryptography"]).status === 0)
export const pythonProgram = python

const hasFastapi = python !== undefined && spawnSync(python, ["-c", "import fastapi, uvicorn"]).status === 0

const byPython = async ({ facilitator, payTo }: SellerNeeds, name: string, word: string): Promise<ReachSeller> => {
  const child = spawn(python!, [join(root, "examples/python/sell.py"), ...(word === "" ? [] : [word])], {
    env: { ...process.env, PAY_TO: payTo, FACILITATOR_URL: facilitator, MAX_TIMEOUT: "300" },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const line: string = await new Promise((resolve, reject) => {
    child.stdout.once("data", (data) => resolve(String(data)))
    child.once("exit", (code) => reject(new Error(`${name} ended with ${code}`)))
  })
  const schemes = word === "" ? {} : { schemes: ["exact"] as const }
  return { name, url: /http:\/\/[\d.:]+/.exec(line)![0], stop: async () => void child.kill(), ...schemes }
}

/** Starts all sellers that can run here. `say` prints a line for each of the others. */
export const startSellers = async (needs: SellerNeeds, say: (line: string) => void) => {
  await installSet("frameworks", say)
  const started = await Promise.all([
    listen("node:http", served(byPath(pagesOf(needs)))),
    byExpress(needs),
    byFastify(needs),
    byHono(needs),
    byKoa(needs),
    byElysia(needs),
    byRouteHandlers(needs),
    byWorker(needs),
    ...(python === undefined ? [] : [byPython(needs, "Python WSGI", "")]),
    ...(hasFastapi ? [byPython(needs, "FastAPI", "--fastapi")] : [])
  ])
  if (python === undefined) say("  not run: Python, there is no python3 with the package cryptography here")
  if (!hasFastapi) say("  not run: FastAPI, python3 has no fastapi with uvicorn here")
  say("  not run: Next and workerd themselves: their handlers are called as they call them")
  return started
}
