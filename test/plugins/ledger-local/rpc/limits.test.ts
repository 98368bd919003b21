// The limits and the refusal messages of the real RPC.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Asset, Contract, Keypair, Operation, xdr } from "@stellar/stellar-sdk"
import { handle } from "../../../../plugins/ledger-local/httpApi.ts"
import { LocalLedger } from "../../../../plugins/ledger-local/LocalLedger.ts"
import { apply, fund, keypair, ledgerLayer, passphrase, transaction } from "../support.ts"

const refused = Effect.fnUntraced(function* (method: string, params?: unknown) {
  const ledger = yield* LocalLedger
  const { error, result } = yield* Effect.orDie(
    ledger.rpc({ jsonrpc: "2.0", id: 1, method, ...(params === undefined ? {} : { params }) })
  )
  return error === undefined ? { result } : { code: error.code, message: error.message }
})

const http = Effect.fnUntraced(function* (path: string, init?: RequestInit) {
  const ledger = yield* LocalLedger
  const response = yield* handle(ledger, new Request(`http://ledger.test${path}`, init))
  return {
    status: response.status,
    headers: response.headers,
    body: yield* Effect.promise(async () => {
      const text = await response.text()
      return text === "" ? undefined : JSON.parse(text)
    })
  }
})

const accountKey = (key: Keypair): string =>
  xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: key.xdrAccountId() })).toXdr("base64")

const provided = <A>(effect: Effect.Effect<A, never, LocalLedger>) => effect.pipe(Effect.provide(ledgerLayer()))

describe("the transport", () => {
  it.effect("carries out a notification without an answer, and answers only the requests of a batch", () =>
    provided(
      Effect.gen(function* () {
        const post = (body: unknown) => http("/", { method: "POST", body: JSON.stringify(body) })
        const notification = { jsonrpc: "2.0", method: "getHealth" }
        const request = { ...notification, id: 1 }
        for (const body of [notification, { ...notification, method: "getNothing" }, [notification, notification]])
          expect(yield* post(body)).toMatchObject({ status: 204, body: undefined })
        expect((yield* post([notification, request, notification])).body.map(({ id }: any) => id)).toEqual([1])
        // An id of null is an id, and an invalid request is refused.
        expect((yield* post({ ...request, id: null })).body).toMatchObject({ id: null, result: { status: "healthy" } })
        expect((yield* post({ method: "getHealth" })).body.error.code).toBe(-32600)
        yield* fund("payer")
        const payment = Operation.payment({
          destination: keypair("payer").publicKey(),
          asset: Asset.native(),
          amount: "1"
        })
        const sent = (yield* transaction(keypair("payer"), [payment])).toEnvelope().toXdr("base64")
        const sending = { jsonrpc: "2.0", method: "sendTransaction", params: { transaction: sent } }
        expect((yield* post(sending)).status).toBe(204)
        expect((yield* post({ ...sending, id: 2 })).body.result.status).toBe("DUPLICATE")
      })
    )
  )

  it.effect("knows its methods, takes parameters as an object, and answers what is not JSON-RPC", () =>
    provided(
      Effect.gen(function* () {
        expect(yield* refused("getNothing")).toEqual({ code: -32601, message: "method not found" })
        expect(yield* refused("getHealth")).toMatchObject({ result: { status: "healthy" } })
        expect((yield* http("/", { method: "POST", body: "{" })).body.error.code).toBe(-32700)
        expect((yield* http("/", { method: "POST", body: "[]" })).body.error.code).toBe(-32600)
        expect((yield* http("/", { method: "POST", body: "null" })).body.error.code).toBe(-32600)
        expect((yield* http("/", { method: "POST", body: "7" })).body.error.code).toBe(-32600)
        const batch = JSON.stringify([
          { jsonrpc: "2.0", id: 1, method: "getHealth" },
          { jsonrpc: "2.0", id: 2, method: "x" }
        ])
        expect((yield* http("/rpc", { method: "POST", body: batch })).body.map(({ id }: any) => id)).toEqual([1, 2])
        expect((yield* http("/", { method: "POST", body: `"${"x".repeat(600_000)}"` })).status).toBe(413)
        expect((yield* http("/", { method: "GET" })).status).toBe(405)
        expect((yield* http("/nothing")).status).toBe(404)
        expect((yield* http("/", { method: "OPTIONS" })).status).toBe(204)
      })
    )
  )

  it.effect("names a parameter of the wrong type and its expected type", () =>
    provided(
      Effect.gen(function* () {
        const sender = yield* fund("sender")
        const native = new Contract(Asset.native().contractId(passphrase))
        const envelope = (yield* transaction(sender, [native.call("decimals")])).toEnvelope().toXdr("base64")
        const cases: ReadonlyArray<readonly [string, unknown, string]> = [
          ["getHealth", [], "an object is required"],
          ["getTransaction", { hash: 5 }, "hash is a text"],
          ["getTransactions", { startLedger: "1" }, "startLedger is a whole number from 0 to 4294967295"],
          ["getLedgers", { startLedger: -1 }, "startLedger is a whole number from 0 to 4294967295"],
          ["getLedgers", { startLedger: 1, pagination: [] }, "pagination is an object"],
          ["getLedgers", { pagination: { cursor: 5 } }, "cursor is a text"],
          ["getLedgerEntries", { keys: "AAAA" }, "keys is a list"],
          ["getLedgerEntries", { keys: [5] }, "keys is a list of texts"],
          ["getEvents", { startLedger: 1_000, filters: {} }, "filters is a list"],
          ["getEvents", { startLedger: 1_000, filters: [{ topics: [5] }] }, "topic 0 is a list of texts"],
          ["sendTransaction", { transaction: {} }, "transaction is a text"],
          ["simulateTransaction", { transaction: envelope, resourceConfig: 5 }, "resourceConfig is an object"],
          [
            "simulateTransaction",
            { transaction: envelope, resourceConfig: { instructionLeeway: -1 } },
            "instructionLeeway is a whole number from 0 to 4294967295"
          ],
          ["simulateTransaction", { transaction: envelope, useUpgradedAuth: "yes" }, "useUpgradedAuth is true or false"]
        ]
        for (const [method, params, what] of cases)
          expect(yield* refused(method, params)).toEqual({ code: -32602, message: `invalid parameters: ${what}` })
      })
    )
  )

  it.effect("names the bad parameter of a path", () =>
    provided(
      Effect.gen(function* () {
        const cases: ReadonlyArray<readonly [string, string, string]> = [
          ["GET", "/ledgers?limit=abc", "limit is a whole number from 1 to 200"],
          ["GET", "/ledgers?limit=1e2", "limit is a whole number from 1 to 200"],
          ["GET", "/ledgers?limit=201", "limit is a whole number from 1 to 200"],
          ["GET", "/ledgers?order=up", "order is asc or desc"],
          ["GET", "/ledgers?cursor=abc", "cursor is a paging_token of a ledger, or now"],
          ["GET", "/friendbot", "addr is an account (G…) or a contract (C…)"],
          ["GET", "/friendbot?addr=abc", "addr is an account (G…) or a contract (C…)"],
          ["GET", "/friendbot?usdc=1,5", "usdc has at most 12 digits before the decimal point and 7 behind it"],
          ["POST", "/close?ledgers=abc", "ledgers is a whole number from 1 to 1000"],
          ["POST", "/advance?ledgers=0", "one of the two is required: ledgers=1 to 1000000, or seconds=1 to 315360000"],
          ["POST", "/revert", "id is required: what POST /snapshot answered"],
          ["DELETE", "/snapshot", "id is required: what POST /snapshot answered"]
        ]
        for (const [method, path, detail] of cases) {
          const { body, status } = yield* http(path, { method })
          expect([path, status, body?.detail]).toEqual([path, 400, detail])
        }
      })
    )
  )

  it.effect("refuses an unknown xdrFormat, in a simulation as an answer", () =>
    provided(
      Effect.gen(function* () {
        const message = "got 'yaml': expected base64, json for optional 'xdrFormat'"
        expect(yield* refused("getLedgerEntries", { keys: [], xdrFormat: "yaml" })).toEqual({ code: -32602, message })
        expect(yield* refused("simulateTransaction", { transaction: "", xdrFormat: "yaml" })).toMatchObject({
          result: { error: message }
        })
      })
    )
  )
})

describe("getLedgerEntries", () => {
  it.effect("getLedgerEntries takes 200 keys in order, omits missing, names bad ones", () =>
    provided(
      Effect.gen(function* () {
        const ledger = yield* LocalLedger
        const [a, b] = [yield* fund("a"), yield* fund("b")]
        const many = Array.from({ length: 201 }, () => accountKey(a))
        expect(yield* refused("getLedgerEntries", { keys: many })).toEqual({
          code: -32602,
          message: "key count (201) exceeds maximum supported (200)"
        })
        expect((yield* ledger.call("getLedgerEntries", { keys: many.slice(1) })).entries).toHaveLength(200)
        const keys = [accountKey(b), accountKey(keypair("absent")), accountKey(a)]
        const { entries } = yield* ledger.call("getLedgerEntries", { keys })
        expect(entries.map(({ key }: any) => key)).toEqual([keys[0], keys[2]])
        expect(entries[0]).toMatchObject({ lastModifiedLedgerSeq: 1_002, extXdr: "AAAAAA==" })
        expect(yield* refused("getLedgerEntries", { keys: ["AAAA"] })).toEqual({
          code: -32602,
          message: "cannot unmarshal key value AAAA at index 0"
        })
        const ttl = xdr.LedgerKey.ttl(new xdr.LedgerKeyTtl({ keyHash: new Uint8Array(32) as any })).toXdr("base64")
        expect(yield* refused("getLedgerEntries", { keys: [ttl] })).toEqual({
          code: -32602,
          message: "ledger ttl entries cannot be queried directly"
        })
      })
    )
  )
})

describe("transactions", () => {
  it.effect("names a malformed envelope and a hash of the wrong length", () =>
    provided(
      Effect.gen(function* () {
        for (const transaction of ["", "!", "AAAA", "AAAAAgAAAAA="]) {
          expect(yield* refused("sendTransaction", { transaction })).toEqual({ code: -32602, message: "invalid_xdr" })
        }
        expect(yield* refused("getTransaction", { hash: "abc" })).toEqual({
          code: -32602,
          message: "unexpected hash length (3)"
        })
        expect(yield* refused("getTransaction", { hash: "z".repeat(64) })).toMatchObject({ code: -32602 })
        expect(yield* refused("getTransaction", { hash: "0".repeat(64) })).toMatchObject({
          result: {
            status: "NOT_FOUND",
            latestLedger: 1_000,
            oldestLedger: 1_000,
            applicationOrder: 0,
            feeBump: false,
            events: {},
            ledger: 0,
            createdAt: "0"
          }
        })
      })
    )
  )

  it.effect("lists transactions and ledgers by pages", () =>
    provided(
      Effect.gen(function* () {
        const ledger = yield* LocalLedger
        for (const name of ["a", "b", "c"]) yield* fund(name)
        const first = yield* ledger.call("getTransactions", { startLedger: 1_000, pagination: { limit: 2 } })
        expect(first.transactions.map(({ ledger }: any) => ledger)).toEqual([1_001, 1_002])
        expect(typeof first.transactions[0].createdAt).toBe("number")
        const rest = yield* ledger.call("getTransactions", { pagination: { cursor: first.cursor, limit: 2 } })
        expect(rest.transactions.map(({ ledger }: any) => ledger)).toEqual([1_003])
        expect(yield* refused("getTransactions", { startLedger: 1_000, pagination: { limit: 201 } })).toEqual({
          code: -32602,
          message: "limit must not exceed 200"
        })
        expect(yield* refused("getTransactions", { startLedger: 5 })).toEqual({
          code: -32600,
          message:
            "start ledger must be between the oldest ledger: 1000 and the latest ledger: 1003 for this rpc instance"
        })
        expect(
          yield* refused("getTransactions", { startLedger: 1_000, pagination: { cursor: first.cursor } })
        ).toMatchObject({ code: -32602 })
        const ledgers = yield* ledger.call("getLedgers", { startLedger: 1_000, pagination: { limit: 3 } })
        expect(ledgers.cursor).toBe("1002")
        expect(
          (yield* ledger.call("getLedgers", { pagination: { cursor: "1002" } })).ledgers.map(
            ({ sequence }: any) => sequence
          )
        ).toEqual([1_003])
        const meta = xdr.LedgerCloseMeta.fromXdr(ledgers.ledgers[1].metadataXdr, "base64") as any
        expect(meta.v2.txProcessing).toHaveLength(1)
      })
    )
  )
})

describe("getEvents", () => {
  it.effect("filters by contract and topic, pages, and keeps to its limits", () =>
    provided(
      Effect.gen(function* () {
        const ledger = yield* LocalLedger
        const [a, b] = [yield* fund("a"), yield* fund("b")]
        for (let i = 1; i <= 3; i++) {
          yield* apply(
            yield* transaction(a, [
              Operation.payment({ destination: b.publicKey(), asset: Asset.native(), amount: String(i) })
            ])
          )
        }
        const symbol = (text: string) => xdr.ScVal.scvSymbol(text).toXdr("base64")
        const events = (filters: ReadonlyArray<unknown>, more: object = {}) =>
          ledger.call("getEvents", { startLedger: 1_001, filters, ...more })
        const sender = xdr.ScVal.scvAddress(xdr.ScAddress.scAddressTypeAccount(a.xdrAccountId())).toXdr("base64")
        const sent = yield* events([{ type: "contract", topics: [[symbol("transfer"), sender, "**"]] }])
        expect(sent.events).toHaveLength(3)
        expect(sent.events[0]).toMatchObject({
          type: "contract",
          ledger: 1_003,
          transactionIndex: 1,
          operationIndex: 0,
          inSuccessfulContractCall: true
        })
        expect(sent.events[0].id).toMatch(/^\d{19}-\d{10}$/)
        expect(sent.events[0].ledgerClosedAt).toBe("1970-01-01T00:00:03Z")
        expect((yield* events([{ topics: [[symbol("fee"), "*"]] }])).events).toHaveLength(5)
        expect((yield* events([{ topics: [["*", "*"]] }])).events).toHaveLength(5)
        expect((yield* events([{ type: "system" }])).events).toHaveLength(0)
        const page = yield* events([{ topics: [[symbol("transfer"), sender, "**"]] }], { pagination: { limit: 2 } })
        const next = yield* ledger.call("getEvents", {
          filters: [{ topics: [[symbol("transfer"), sender, "**"]] }],
          pagination: { cursor: page.cursor, limit: 2 }
        })
        expect([...page.events, ...next.events].map(({ id }: any) => id)).toEqual(sent.events.map(({ id }: any) => id))
        const filters = (count: number, filter: object = {}) => Array.from({ length: count }, () => filter)
        const wrong = (params: object) => refused("getEvents", { startLedger: 1_001, ...params })
        expect(yield* wrong({ filters: filters(6) })).toEqual({
          code: -32602,
          message: "maximum 5 filters per request"
        })
        expect(yield* wrong({ filters: [{ type: "diagnostic" }] })).toMatchObject({ code: -32602 })
        expect(yield* wrong({ filters: [{ contractIds: ["C"] }] })).toMatchObject({
          code: -32602,
          message: "filter 1 invalid: contract ID 0 invalid"
        })
        expect(yield* wrong({ filters: [{ contractIds: filters(6, {}) }] })).toMatchObject({
          message: "filter 1 invalid: maximum 5 contract IDs per filter"
        })
        expect(yield* wrong({ filters: [{ topics: filters(6, []) }] })).toMatchObject({
          message: "filter 1 invalid: maximum 5 topics per filter"
        })
        expect(yield* wrong({ filters: [{ topics: [[]] }] })).toMatchObject({ code: -32602 })
        expect(yield* wrong({ filters: [{ topics: [["*", "*", "*", "*", "*"]] }] })).toMatchObject({ code: -32602 })
        expect(yield* wrong({ filters: [{ topics: [["**", "*"]] }] })).toMatchObject({ code: -32602 })
        expect(yield* wrong({ filters: [], pagination: { limit: 10_001 } })).toEqual({
          code: -32602,
          message: "limit must not exceed 10000"
        })
        expect(yield* wrong({ filters: [], pagination: { cursor: page.cursor } })).toMatchObject({ code: -32602 })
        const { oldestLedger, latestLedger } = yield* ledger.call("getHealth")
        expect(yield* refused("getEvents", { startLedger: 999, filters: [] })).toEqual({
          code: -32600,
          message: `startLedger must be within the ledger range: ${oldestLedger} - ${latestLedger}`
        })
      })
    )
  )
})

describe("friendbot and Horizon's ledgers", () => {
  it.effect("the friendbot funds accounts and explains refusals", () =>
    provided(
      Effect.gen(function* () {
        const ledger = yield* LocalLedger
        const key = keypair("newcomer").publicKey()
        const first = yield* http(`/friendbot?addr=${key}&usdc=12.5`)
        expect(first.status).toBe(200)
        expect((yield* ledger.call("getTransaction", { hash: first.body.hash })).status).toBe("SUCCESS")
        expect((yield* http(`/friendbot?addr=${key}`, { method: "POST" })).status).toBe(200)
        for (const query of [
          "",
          "addr=G",
          `addr=${key}&usdc=x`,
          `addr=${key}&usdc=-1`,
          `addr=${key}&usdc=0.00000001`,
          `addr=${key}&usdc=999999999999`
        ]) {
          expect((yield* http(`/friendbot?${query}`)).status, query).toBe(400)
        }
      })
    )
  )

  it.effect("Horizon's ledgers page in both orders", () =>
    provided(
      Effect.gen(function* () {
        const ledger = yield* LocalLedger
        yield* ledger.closeMany(5)
        const { body } = yield* http("/ledgers?limit=2&order=desc")
        const records = body._embedded.records
        expect(records.map(({ sequence }: any) => sequence)).toEqual([1_005, 1_004])
        expect(records[0]).toMatchObject({
          closed_at: "1970-01-01T00:00:05Z",
          protocol_version: 27,
          base_fee_in_stroops: 100,
          prev_hash: records[1].hash
        })
        const next = new URL(body._links.next.href)
        const more = yield* http(`${next.pathname}${next.search}`)
        expect(more.body._embedded.records.map(({ sequence }: any) => sequence)).toEqual([1_003, 1_002])
        expect((yield* http("/ledgers")).body._embedded.records[0].sequence).toBe(1_000)
        for (const query of ["limit=0", "limit=201", "limit=x", "order=up", "cursor=x"])
          expect((yield* http(`/ledgers?${query}`)).status, query).toBe(400)
      })
    )
  )
})
