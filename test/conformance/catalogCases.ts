// The catalog against the official extension package: every declaration of its helpers is paid for through the official
// client, then found listed, resolved and filtered. The official seller's own routes are listed and its live 402 proves
// their owner. The official discovery client lists and searches.
import assert from "node:assert/strict"
import { join } from "node:path"
import { post } from "../../runtime/redteam/ask.ts"
import { installSet, type OfficialSet, startSet } from "./officialSet.ts"
import { type Program, startProgram } from "./programs.ts"
import type { Part } from "./report.ts"
import { root, type World } from "./world.ts"

const network = "stellar:testnet"

interface Row {
  readonly name: string
  readonly type: "http" | "mcp"
  readonly path: string
  readonly listed: string
  readonly method?: string
  readonly toolName?: string
  readonly extensions: { readonly bazaar: any }
}

const getJson = async (url: string): Promise<any> => (await fetch(url)).json()

const outcomeOf = (headers: Headers): any =>
  JSON.parse(Buffer.from(headers.get("extension-responses") ?? "e30=", "base64").toString("utf8")).bazaar

/** Polls for buffered writes, and for probes of an origin. */
const eventually = async <A>(ask: () => Promise<A>, holds: (answer: A) => boolean): Promise<A> => {
  for (let attempt = 0; ; attempt++) {
    const answer = await ask()
    if (holds(answer) || attempt > 150) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const resolveUrl = (world: World, url: string, toolName?: string) =>
  `${world.facilitator}/discovery/resource?url=${encodeURIComponent(url)}&` +
  (toolName === undefined ? "type=http" : `type=mcp&toolName=${toolName}`)

export const catalogCases = async (world: World, part: Part, say: (line: string) => void): Promise<void> => {
  await installSet("c", say)
  const payTo = (await world.account(0)).publicKey()
  const set = await startSet("c", world, payTo, network)
  const official = startProgram(
    process.execPath,
    [join(root, "test", "official", "c", "catalog.mjs"), JSON.stringify({ facilitator: world.facilitator })],
    {
      cwd: join(root, "test", "official", "c")
    }
  )
  try {
    const { rows } = (await official.next((line) => line.rows !== undefined)) as { rows: ReadonlyArray<Row> }
    await everyDeclaration(world, part, set, payTo, rows)
    await sellersRoutes(world, part, set, payTo)
    await officialDiscovery(world, part, official, payTo, rows)
  } finally {
    await official.stop()
    await set.stop()
  }
}

const origin = "http://127.0.0.1:1"

const everyDeclaration = async (
  world: World,
  part: Part,
  set: OfficialSet,
  payTo: string,
  rows: ReadonlyArray<Row>
): Promise<void> => {
  const unpaid = await fetch(`${set.sellerUrl}/plain`)
  const terms = JSON.parse(Buffer.from(unpaid.headers.get("payment-required")!, "base64").toString("utf8"))
  for (const row of rows) {
    await part.check(`${row.name} is paid, listed and resolved [S9][S18][S21][S34][S41][S79][S88]`, async () => {
      const buyer = await world.account(1)
      const resource = {
        url: `${origin}${row.path}?q=1`,
        description: `Row: ${row.name}`,
        mimeType: "application/json"
      }
      const paymentPayload = await set.sign({ ...terms, resource, extensions: row.extensions }, buyer.secret())
      const body = { x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted }
      const verified = await eventually(
        () => post(`${world.facilitator}/verify`, body),
        ({ headers }) => outcomeOf(headers)?.status !== "processing"
      )
      assert.equal(verified.json.isValid, true, verified.text)
      assert.deepEqual(outcomeOf(verified.headers), { status: "success" })
      const settled = await post(`${world.facilitator}/settle`, body)
      assert.equal(settled.json.success, true, settled.text)
      assert.equal(outcomeOf(settled.headers).status, "success")
      // A route's template is found once its payment is counted.
      const found = await eventually(
        () => getJson(resolveUrl(world, `${origin}${row.path}`, row.toolName)),
        ({ x402Version }) => x402Version === 2
      )
      assert.equal(found.x402Version, 2, JSON.stringify(found))
      assert.equal(found.resource.resource, `${origin}${row.listed}`)
      assert.equal(found.resource.type, row.type)
      assert.deepEqual(found.resource.accepts, [paymentPayload.accepted])
      const { pathParams: _, ...input } = row.extensions.bazaar.info.input
      assert.deepEqual(found.resource.extensions.bazaar.info.input, input)
      assert.deepEqual(found.resource.extensions.bazaar.info.output, row.extensions.bazaar.info.output)
      assert.deepEqual(found.resource.extensions.bazaar.schema, row.extensions.bazaar.schema)
    })
  }
  await part.check(
    "each of them is found by every filter that fits it, and by none that does not [S107][S108]",
    async () => {
      const asset = terms.accepts[0].asset
      const total = async (query: string) =>
        (await getJson(`${world.facilitator}/discovery/resources?payTo=${payTo}&limit=1000&${query}`)).pagination.total
      const [http, mcp] = [
        rows.filter(({ type }) => type === "http").length,
        rows.filter(({ type }) => type === "mcp").length
      ]
      assert.deepEqual(
        await Promise.all(
          [
            "type=http",
            "type=mcp",
            `network=${network}`,
            "network=ledger:testnet",
            "scheme=exact",
            `asset=${asset}`,
            `asset=${asset}&maxPrice=10000`,
            "extensions=bazaar",
            "extensions=catalog"
          ].map(total)
        ),
        [http, mcp, ...Array.from({ length: 7 }, () => http + mcp)]
      )
      assert.deepEqual(
        await Promise.all(
          [
            "network=eip155:8453",
            "scheme=upto",
            `asset=${payTo}`,
            `asset=${asset}&maxPrice=9999`,
            "extensions=sign-in-with-x"
          ].map(total)
        ),
        [0, 0, 0, 0, 0]
      )
    }
  )
}

const sellersRoutes = async (world: World, part: Part, set: OfficialSet, payTo: string): Promise<void> => {
  const buyer = await world.account(1)
  for (const [path, listed, more] of [
    ["/weather?city=Riga", "/weather", {}],
    ["/users/7", "/users/:id", {}],
    ["/report", "/report", { method: "POST", json: { company: "Acme" } }]
  ] as const) {
    await part.check(`the official seller's ${listed} is listed once it was bought [S16][S17]`, async () => {
      const purchase = await set.buy({ path, secret: buyer.secret(), ...more })
      assert.equal(purchase.error, undefined)
      assert.equal(purchase.status, 200)
      const found = await eventually(
        () => getJson(resolveUrl(world, `${set.sellerUrl}${path}`)),
        ({ resource }) => resource !== undefined
      )
      assert.equal(found.resource?.resource, `${set.sellerUrl}${listed}`)
      assert.equal(found.resource.verification, "payment_observed")
    })
  }
  await part.check("the official seller's live 402 proves the owner of its declared GET", async () => {
    const found = await eventually(
      () => getJson(resolveUrl(world, `${set.sellerUrl}/weather`)),
      ({ resource }) => resource?.ownership === "proven"
    )
    assert.equal(found.resource.ownership, "proven")
    const why = await getJson(
      `${world.facilitator}/catalog/v1/observations?url=${encodeURIComponent(`${set.sellerUrl}/weather`)}`
    )
    assert.equal(why.listings[0].ownership, "proven")
    assert.ok(why.items.some(({ decision, payTo: recipient }: any) => decision === "listed" && recipient === payTo))
  })
}

const officialDiscovery = async (
  world: World,
  part: Part,
  official: Program,
  payTo: string,
  rows: ReadonlyArray<Row>
): Promise<void> => {
  let id = 0
  const ask = async (request: Record<string, unknown>): Promise<any> => {
    const mine = ++id
    official.send({ id: mine, ...request })
    return official.next((line) => line.id === mine)
  }
  await part.check("the official discovery client lists, filtered and paged [S106][S109][S312]", async () => {
    const { error, value } = await ask({ list: { type: "http", payTo, scheme: "exact", network, limit: 5, offset: 2 } })
    assert.equal(error, undefined)
    assert.equal(value.x402Version, 2)
    assert.equal(value.items.length, 5)
    assert.equal(value.pagination.limit, 5)
    assert.equal(value.pagination.offset, 2)
    assert.equal(value.pagination.total, rows.filter(({ type }) => type === "http").length + 3)
  })
  const search = async (query: Record<string, unknown>): Promise<any> => {
    const { error, value } = await ask({ search: query })
    assert.equal(error, undefined)
    return value
  }
  const named = ({ resource, toolName = "" }: any): string => `${resource} ${toolName}`
  const { search: state } = await getJson(`${world.facilitator}/health/ready`)
  // The client sends no mode, so the enabled modes answer, and nothing is missing.
  await part.check("the official discovery client finds each declaration by its words [S115][S127][S334]", async () => {
    assert.equal(state.lexical, "ready")
    for (const row of rows) {
      const expected = named({ resource: `${origin}${row.listed}`, toolName: row.toolName })
      // Indexing comes after listing.
      const found = await eventually(
        () => search({ query: row.name, type: row.type, limit: 50 }),
        ({ resources }) => resources.some((one: any) => named(one) === expected)
      )
      assert.equal(found.x402Version, 2)
      assert.equal(found.partialResults, false)
      assert.ok(
        found.resources.some((one: any) => named(one) === expected),
        `${row.name}: ${JSON.stringify(found.resources.map(named))}`
      )
      assert.ok(found.resources.every(({ type }: any) => type === row.type))
    }
    // Not first: older evidence is ranked before younger evidence, however relevant that is.
    const { resources } = await search({ query: "multiply", limit: 5 })
    assert.ok(resources.some(({ toolName }: any) => toolName === "multiply"))
  })
  await part.check(
    "the official discovery client pages through a search, each resource once [S109][S124][S125]",
    async () => {
      const seen: Array<string> = []
      let cursor: string | undefined
      do {
        const page = await search({ query: "body", limit: 2, ...(cursor === undefined ? {} : { cursor }) })
        assert.ok(page.resources.length <= 2 && page.pagination.limit === 2)
        seen.push(...page.resources.map(named))
        cursor = page.pagination.cursor ?? undefined
      } while (cursor !== undefined && seen.length < 100)
      const bodies = rows
        .filter(({ name }) => / body/.test(name))
        .map((row) => named({ resource: `${origin}${row.listed}`, toolName: row.toolName }))
      assert.equal(new Set(seen).size, seen.length)
      assert.ok(bodies.length >= 9 && bodies.every((one) => seen.includes(one)), JSON.stringify({ seen, bodies }))
    }
  )
  await part.check(
    "a search that nothing fits finds nothing, and one that is malformed says why [S117][S131]",
    async () => {
      const nothing = await search({ query: "zqxjvbk wpfhgmz", limit: 5 })
      assert.deepEqual([nothing.resources, nothing.partialResults, nothing.pagination.cursor], [[], false, null])
      assert.match((await ask({ search: { query: "weather", type: "ftp" } })).error, /400.*invalid_filter/)
    }
  )
}
