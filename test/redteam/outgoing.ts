// The hostile neighborhood, in a network namespace of its own: public, private and metadata addresses of both families
// on one loopback, a DNS server that is silent, slow, mixed or rebinds, and origins that redirect, drip and flood.
// First `safeFetch`, the only client for strangers' addresses, gets each URL. Then a facilitator reads the documents of
// hostile origins and sends webhooks to hostile receivers, and a tool server fetches resources of hostile sellers. A
// case holds if its outcome is the expected one and packets reached public addresses only. `run.ts` starts this program
// inside the namespace.
import { Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { createServer as createHttp } from "node:http"
import { createServer, type Socket } from "node:net"
import process from "node:process"
import { isPublicAddress } from "../../kernel/http/addresses.ts"
import { safeFetch } from "../../kernel/http/safeFetch.ts"
import { NameServers } from "../../runtime/platform/nodeNames.ts"
import { encodeReference } from "../../plugins/mcp-tools/Reference.ts"
import { layer as outboundLayer } from "../../runtime/platform/nodeOutbound.ts"
import { declaring, verified } from "../plugins/catalog/support.ts"
import { call, connectHttp, startTools } from "../plugins/mcp-tools/support.ts"
import { agentKey, payingSet, sealed } from "../plugins/mcp-tools-pay/payWorld.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { type Names, startNameServer } from "../support/nameServer.ts"

const [publicV4, publicV6] = ["93.184.215.14", "2606:2800:220:1::1"]
const privateV4 = ["10.0.0.5", "172.16.0.5", "192.168.1.5", "169.254.169.254", "100.100.100.200", "198.18.0.1"]
const privateV6 = ["fd00::5", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1"]
const port = 8_080
const [fetchMillis, dripMillis, floodBytes] = [4_000, 200, 400_000]

/** Addresses by the first label of a name; a list of lists answers one after another, and repeats the last. */
const zones: Readonly<Record<string, ReadonlyArray<string> | ReadonlyArray<ReadonlyArray<string>>>> = {
  good: [publicV4],
  goodv6: [publicV6],
  slow: [publicV4],
  private: ["10.0.0.5"],
  metadata: ["169.254.169.254"],
  loop: ["127.0.0.1"],
  loopv6: ["::1"],
  ulav6: ["fd00::5"],
  metadatav6: ["fd00:ec2::254"],
  nat64: ["64:ff9b::a9fe:a9fe"],
  mixed: [publicV4, "10.0.0.5"],
  mixedlast: ["10.0.0.5", publicV4],
  mixedv6: [publicV4, "fd00::5"],
  mixedmetadata: [publicV6, "169.254.169.254"],
  rebind: [[publicV4], ["127.0.0.1"]],
  rebindv6: [[publicV6], ["::1"]],
  unbind: [["127.0.0.1"], [publicV4]],
  hop: [[publicV4], ["10.0.0.5"]],
  hopmeta: [[publicV4], ["169.254.169.254"]],
  empty: []
}

/** Each family of a name counts for itself, since both are asked. */
const hostileNames = (): Names => {
  const times = new Map<string, number>()
  return (name, family) => {
    const [label = ""] = name.split(".")
    const zone = zones[label]
    if (zone === undefined) return undefined
    const count = times.get(`${name} ${family}`) ?? 0
    times.set(`${name} ${family}`, count + 1)
    const turns = zone.every((one) => typeof one === "string") ? [zone] : zone
    const addresses = turns[Math.min(count, turns.length - 1)] as ReadonlyArray<string>
    return { addresses, ...(label === "slow" ? { lateMillis: 800 } : {}) }
  }
}

/** Redirects of every origin, by path. */
const redirects: Readonly<Record<string, string>> = {
  "/to-loopback": `http://127.0.0.1:${port}/`,
  "/to-metadata": "http://169.254.169.254/latest/meta-data/",
  "/to-private": `http://private.a.dev:${port}/`,
  "/to-other": `http://good.b.dev:${port}/`,
  "/to-port": "http://good.a.dev:8081/",
  "/to-tls": "https://good.a.dev/",
  "/to-file": "file:///etc/passwd",
  "/to-gopher": `gopher://127.0.0.1:${port}/`,
  "/to-slashes": `//10.0.0.5:${port}/`,
  "/to-backslashes": `\\\\10.0.0.5:${port}/`,
  "/to-user": `http://good.a.dev:${port}@10.0.0.5:${port}/`,
  "/to-decimal": `http://2130706433:${port}/`,
  "/to-nowhere": "http://",
  "/to-self": "/to-self",
  "/to-own": "/own"
}

/** Origins on every address; `dialed` has the addresses and paths that packets reached. */
const startOrigins = Effect.acquireRelease(
  Effect.promise(async () => {
    const dialed: Array<string> = []
    const origin = createHttp((request, response) => {
      const { pathname } = new URL(request.url ?? "/", "http://x")
      const location = redirects[pathname] ?? (pathname === "/hop" ? "/own" : undefined)
      if (pathname === "/drip") {
        const timer = setInterval(() => response.write(" "), dripMillis)
        response.once("close", () => clearInterval(timer))
      } else if (pathname === "/flood") response.end(Buffer.alloc(floodBytes, " "))
      else if (location === undefined) response.end("{}")
      else response.writeHead(302, { location }).end()
    })
    const record = (isHttp: boolean) => (socket: Socket) => {
      dialed.push((socket.localAddress ?? "").replace(/^::ffff:/, ""))
      socket.on("error", () => undefined)
      if (isHttp) origin.emit("connection", socket)
      else socket.destroy()
    }
    const servers = [80, 443, port, 8_081, 8_443].map((at) => createServer(record(at === port)).listen(at, "::"))
    await Promise.all(servers.map((server) => once(server, "listening")))
    return { dialed, servers }
  }),
  ({ servers }) => Effect.sync(() => servers.forEach((server) => server.close()))
)

const at = (host: string, path = "/own") => `http://${host}:${port}${path}`
const blocked = (...hosts: ReadonlyArray<string>) => hosts.map((host) => [at(host), "blocked"] as const)

/** URLs and the expected outcome: a status, or the reason of a refusal. */
const urls: ReadonlyArray<readonly [url: string, outcome: number | string]> = [
  [at("good.a.dev"), 200],
  [at("goodv6.a.dev"), 200],
  [at("slow.a.dev"), 200],
  [at(publicV4), 200],
  [at(`[${publicV6}]`), 200],
  ...blocked("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0", "[::]", "[::1]"),
  ...blocked("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:a9fe:a9fe]"),
  ...blocked(...privateV4, ...privateV6.map((address) => `[${address}]`)),
  ...blocked("100.64.0.1", "192.0.2.1", "203.0.113.5", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[ff02::1]"),
  ...blocked("localhost", "LOCALHOST", "localhost.", "a.localhost", "metadata.google.internal", "printer", "a.local"),
  ...blocked("user:secret@good.a.dev", "good.a.dev@127.0.0.1", "１２７.0.0.1", "127。0。0。1"),
  ...["private", "metadata", "loop", "loopv6", "ulav6", "metadatav6", "nat64"].flatMap((name) =>
    blocked(`${name}.a.dev`)
  ),
  ...["mixed", "mixedlast", "mixedv6", "mixedmetadata", "unbind"].flatMap((name) => blocked(`${name}.a.dev`)),
  [at("rebind.a.dev"), 200],
  [at("rebindv6.a.dev"), 200],
  [at("silent.a.dev"), "unresolved"],
  [at("empty.a.dev"), "unresolved"],
  ["http://good.a.dev:22/", "blocked"],
  ["http://good.a.dev:25/", "blocked"],
  ["http://good.a.dev:6379/", "unreachable"],
  ["ftp://good.a.dev/", "insecure"],
  ["file:///etc/passwd", "insecure"],
  [`gopher://127.0.0.1:${port}/`, "insecure"],
  ...Object.keys(redirects).map((path) => [at("good.a.dev", path), path === "/to-own" ? 200 : "redirected"] as const),
  [at("hop.a.dev", "/hop"), "blocked"],
  [at("hopmeta.a.dev", "/hop"), "blocked"],
  [at("good.a.dev", "/drip"), "timeout"],
  [at("good.a.dev", "/flood"), "too_large"]
]

const policy = { allowLocal: false, allowPlain: true, timeoutMillis: fetchMillis, bytesMax: 100_000, redirectsMax: 3 }

const outcomeOf = (url: string) =>
  safeFetch(new URL(url), { method: "GET", headers: {} }, policy).pipe(
    Effect.match({ onSuccess: ({ status }): number | string => status, onFailure: ({ reason }) => reason })
  )

/** First labels of hostile names, after a good one. */
const hostile = [
  "good",
  "private",
  "metadata",
  "loopv6",
  "mixed",
  "mixedv6",
  "unbind",
  "rebind",
  "hop",
  "silent",
  "empty"
]

/** A facilitator that strangers and its operator send to hostile names. */
const startTarget = (nameServer: string) =>
  startFacilitator({
    nameServers: [nameServer],
    closeMillis: 1_000,
    environment: { HOOK_SECRET: "a-secret-of-the-receivers-0123" },
    set: [
      "plugins=[ledger-local, x402-exact, catalog, webhooks]",
      "catalog_security.require_https_origins=false",
      "catalog_security.allow_local_origins=false",
      "webhooks.allow_local_receivers=false",
      "catalog_security.probe_pause_seconds=0",
      "catalog_security.canary_urls=[]",
      "webhooks.retry_first_ms=200",
      `webhooks.receivers=${JSON.stringify(
        hostile.map((name) => ({ name, url: `https://${name}.hooks.dev:8443/`, secret_env: "HOOK_SECRET" }))
      )}`
    ]
  })

/** Has every hostile origin read, then pays while webhooks go to hostile receivers. */
const playPaths = Effect.fnUntraced(function* (
  { account, ask, payment, settle }: Facilitator,
  { dialed, record }: Scores
) {
  const origins = [
    ...hostile.map((name) => at(`${name}.origin.dev`, "")),
    at("[fd00:ec2::254]", ""),
    at("10.0.0.5", "")
  ]
  for (const origin of origins) {
    const { status } = yield* ask(`/catalog/v1/look?origin=${encodeURIComponent(origin)}`, { method: "POST" })
    record(`documents of ${origin}`, status < 500 ? undefined : `it answers ${status}`)
  }
  const payTo = (yield* account()).publicKey()
  const payer = yield* account()
  for (let times = 0; times < 3; times++) {
    const settled = yield* settle((yield* payment({ payer, payTo, amount: 1_000n })).body)
    if (settled.json?.success !== true) record("a payment between hostile receivers", settled.text)
  }
  // Every receiver has had an attempt and its repetition by then.
  yield* Effect.sleep("8 seconds")
  record("webhooks to hostile receivers", dialed.includes(publicV4) ? undefined : "the public one was not dialed")
})

/** Lists a resource of each hostile name, and has a tool server fetch it. */
const playTools = Effect.fnUntraced(function* (facilitator: Facilitator, nameServer: string, record: Scores["record"]) {
  const [payer, payee] = [yield* facilitator.account(), yield* facilitator.account()]
  const urls = hostile.map((name) => `https://${name}.tools.dev:8443/own`)
  for (const url of urls)
    yield* verified(
      facilitator,
      yield* declaring(facilitator, { payer, payTo: payee.publicKey(), url, amount: 1_000n })
    )
  const { file, key } = sealed(payer.secret())
  const tools = yield* startTools({
    facilitatorUrl: facilitator.url,
    set: [
      ...payingSet(facilitator).filter((setting) => !setting.startsWith("allow_insecure_local")),
      "facilitator.allow_insecure=true",
      "http_payments.enabled=true",
      "signer.mode=encrypted-key",
      `signer.keystore_file=${file}`,
      "budget.store=memory"
    ],
    environment: { TOOLS_KEYSTORE_KEY: key, TOOLS_API_KEYS: agentKey }
  }).pipe(Effect.provideService(NameServers, [nameServer]))
  const client = yield* connectHttp(tools, agentKey.split(":")[1])
  for (const url of urls) {
    const ref = encodeReference({ type: "http", url, toolName: "" })
    const { body, isError } = yield* call(client, "x402_fetch_resource", { ref, query: { city: "Riga" } })
    // The good name's receiver ends each TLS connection.
    const isExpected = !url.includes("good") || body["details"]?.reason === "unreachable"
    record(`a tool's fetch of ${url}`, isError && isExpected ? undefined : JSON.stringify(body))
  }
})

interface Scores {
  readonly dialed: ReadonlyArray<string>
  /** A case, and why it failed. Addresses that were dialed since the case before count. */
  readonly record: (name: string, problem: string | undefined) => void
}

const play = Effect.gen(function* () {
  const { at: nameServer } = yield* startNameServer(hostileNames())
  const { dialed } = yield* startOrigins
  let [held, failed] = [0, 0]
  const record: Scores["record"] = (name, problem) => {
    const forbidden = dialed.splice(0).filter((address) => !isPublicAddress(address))
    const why = forbidden.length > 0 ? `dialed ${[...new Set(forbidden)].join(", ")}` : problem
    if (why === undefined) held += 1
    else {
      failed += 1
      console.log(`failed  ${name}: ${why}`)
    }
  }
  const outbound = outboundLayer.pipe(Layer.provide(Layer.succeed(NameServers, [nameServer])))
  yield* Effect.forEach(urls, ([url, expected]) =>
    Effect.map(outcomeOf(url), (outcome) =>
      record(url, outcome === expected ? undefined : `${outcome}, expected ${expected}`)
    )
  ).pipe(Effect.provide(outbound))
  const target = yield* startTarget(nameServer)
  yield* playPaths(target, { dialed, record })
  yield* playTools(target, nameServer, record)
  console.log(`outgoing on ${"Deno" in globalThis ? "Deno" : "Node"}: ${held} held, ${failed} failed, 0 skipped`)
  return failed === 0
})

execFileSync("ip", ["link", "set", "lo", "up"])
for (const address of [publicV4, ...privateV4]) execFileSync("ip", ["addr", "add", `${address}/32`, "dev", "lo"])
for (const address of [publicV6, ...privateV6])
  execFileSync("ip", ["-6", "addr", "add", `${address}/128`, "dev", "lo", "nodad"])
process.exit((await Effect.runPromise(Effect.scoped(play))) ? 0 : 1)
