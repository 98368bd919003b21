// The ledger's RPC as a foreign server that may be slow, silent, wrong or lying: which answers are accepted, which
// endpoint is asked next, which calls are never sent twice. Every answer here comes over HTTP from a scripted server.
import { describe, expect, it } from "@effect/vitest"
import { xdr } from "@stellar/stellar-sdk/base"
import { Duration, Effect, Layer, Metric, Option } from "effect"
import { Base64 } from "effect/encoding"
import { Keypair } from "@stellar/stellar-sdk"
import {
  cancelTransaction,
  encodeEnvelope,
  hashesOf,
  networkIdOf,
  withSignatures
} from "../../../kernel/stellar/Envelope.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { checkEndpoints, layer } from "../../../kernel/ledger/makeLedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import * as NodeCrypto from "../../../runtime/platform/nodeCrypto.ts"
import * as NodeHttpCalls from "../../../runtime/platform/nodeHttpCalls.ts"
import { gzipSync } from "node:zlib"
import { readRpcHeaders, type RpcHeader } from "../../../kernel/config/rpcHeaders.ts"
import { type Said, type ScriptedRpc, startScriptedRpc, testPassphrase } from "../../support/scriptedRpc.ts"
import { bumpWithSignature, feeBump } from "../../support/feeBump.ts"
import { readHostError } from "../../../kernel/ledger/makeSimulate.ts"

const platform = Layer.merge(NodeCrypto.layer, NodeHttpCalls.layer)

const short = Duration.millis(300)
const optionsOf = (servers: ReadonlyArray<{ readonly url: string }>, timeout = Duration.seconds(5)) => ({
  urls: servers.map(({ url }) => url),
  passphrase: testPassphrase,
  timeout
})

const latest = (sequence: number): Said => ({ result: { sequence, protocolVersion: 23, closeTime: "1700000000" } })
const wrongNetwork: Said = {
  result: { passphrase: "Public Global Stellar Network ; September 2015", protocolVersion: 23 }
}

/** Runs `use` with the port over these servers. */
const over = <A, E>(
  servers: ReadonlyArray<{ readonly url: string }>,
  use: (rpc: LedgerRpc["Service"]) => Effect.Effect<A, E>,
  timeout?: Duration.Duration
) => Effect.flatMap(LedgerRpc, use).pipe(Effect.provide(layer(optionsOf(servers, timeout))), Effect.provide(platform))

/** A connection that was open and closes without an answer costs one repetition, which is counted once. */
const timesAsked = ({ asked }: ScriptedRpc, expected: string): number => {
  const times = asked.filter((method) => method === expected).length
  return times === 2 ? 1 : times
}

const live = (name: string, test: () => Effect.Effect<void, unknown, import("effect").Scope.Scope>) =>
  it.live(name, () => Effect.scoped(test()))

describe("endpoint selection", () => {
  live("prefers the first endpoint and falls back on any failure", () =>
    Effect.gen(function* () {
      const failures: ReadonlyArray<readonly [string, Said]> = [
        ["silent", "silence"],
        ["hangs up", "hangup"],
        ["no JSON", { raw: "<html>", status: 502 }],
        ["an error", { error: { code: -32603, message: "no" } }],
        ["another shape", { result: { sequence: "many" } }],
        ["no result", { raw: "{}" }],
        ["another id", { otherId: { sequence: 7, protocolVersion: 23 } }],
        ["endless", "endless"],
        ["null", { raw: "null" }]
      ]
      for (const [name, failure] of failures) {
        const [bad, good] = [
          yield* startScriptedRpc({ getLatestLedger: failure }),
          yield* startScriptedRpc({ getLatestLedger: latest(42) })
        ]
        const answer = yield* over([bad, good], (rpc) => rpc.latestLedger)
        expect([name, answer.sequence]).toEqual([name, 42])
        expect(bad.asked.length).toBeGreaterThan(0)
      }
    })
  )

  live("checks an endpoint's network within the timeout of one call", () =>
    Effect.gen(function* () {
      const late = { afterMillis: 700 }
      const slow = yield* startScriptedRpc({
        getNetwork: { result: { passphrase: testPassphrase, protocolVersion: 23 }, ...late },
        getLatestLedger: { result: { sequence: 1, protocolVersion: 23, closeTime: "1700000000" }, ...late }
      })
      const error = yield* Effect.flip(over([slow], (rpc) => rpc.latestLedger, Duration.seconds(1)))
      expect(error.message).toBe("TimeoutError")
    })
  )

  live("reports per endpoint whether it answered the last call", () =>
    Effect.gen(function* () {
      const reported = Effect.map(Metric.snapshot, (all) =>
        all
          .filter(({ id }) => id === "tollkeeper_ledger_endpoint_available")
          .map(({ attributes, state }) => `${attributes?.["endpoint"]}: ${(state as { value?: number }).value}`)
          .sort()
      )
      for (const failure of ["silence", { raw: "<html>", status: 502 }] satisfies ReadonlyArray<Said>) {
        const first = yield* startScriptedRpc({ getLatestLedger: failure })
        const second = yield* startScriptedRpc({ getLatestLedger: latest(2) })
        yield* over([first, second], (rpc) =>
          Effect.gen(function* () {
            expect(yield* rpc.latestLedger).toMatchObject({ sequence: 2 })
            expect(yield* reported).toEqual(["1: 0", "2: 1"])
            first.script["getLatestLedger"] = latest(1)
            yield* rpc.latestLedgers
            expect(yield* reported).toEqual(["1: 1", "2: 1"])
          })
        )
      }
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  live("deprioritizes a failed endpoint for a while, but never the only one", () =>
    Effect.gen(function* () {
      const [bad, good] = [
        yield* startScriptedRpc({ getLatestLedger: "hangup" }),
        yield* startScriptedRpc({ getLatestLedger: latest(1) })
      ]
      yield* over([bad, good], (rpc) => Effect.andThen(rpc.latestLedger, rpc.latestLedger))
      expect(timesAsked(bad, "getLatestLedger")).toBe(1)
      const lone = yield* startScriptedRpc({ getLatestLedger: "hangup" })
      const answer = yield* over([lone], (rpc) =>
        Effect.gen(function* () {
          yield* Effect.flip(rpc.latestLedger)
          lone.script["getLatestLedger"] = latest(9)
          return yield* rpc.latestLedger
        })
      )
      expect(answer.sequence).toBe(9)
    })
  )

  live("asks unfit endpoints last, and each for its own head in a survey", () =>
    Effect.gen(function* () {
      const servers = [
        yield* startScriptedRpc({ getLatestLedger: latest(1) }),
        yield* startScriptedRpc({ getLatestLedger: "hangup" }),
        yield* startScriptedRpc({ getLatestLedger: latest(3), sendTransaction: "hangup" })
      ]
      yield* over(servers, (rpc) =>
        Effect.gen(function* () {
          expect((yield* rpc.latestLedgers).map(({ endpoint, sequence }) => [endpoint, sequence])).toEqual([
            [0, 1],
            [2, 3]
          ])
          yield* rpc.setUnfit(new Set([0]))
          expect(yield* rpc.latestLedger).toMatchObject({ endpoint: 2, sequence: 3 })
          yield* rpc.send("AAAA", "00")
          yield* rpc.setUnfit(new Set())
          expect(yield* rpc.latestLedger).toMatchObject({ endpoint: 0, sequence: 1 })
        })
      )
      expect(servers.map(({ asked }) => asked.includes("sendTransaction"))).toEqual([false, false, true])
    })
  )

  live("when all endpoints fail, the error names the operation but no content", () =>
    Effect.gen(function* () {
      const server = yield* startScriptedRpc({ simulateTransaction: { raw: "the-envelope-again", status: 500 } })
      const error = yield* Effect.flip(over([server], (rpc) => rpc.simulate("an-envelope")))
      expect(error).toMatchObject({ _tag: "LedgerUnavailable", operation: "simulateTransaction" })
      expect(JSON.stringify(error)).not.toContain("envelope-again")
      expect(JSON.stringify(error)).not.toContain("an-envelope")
    })
  )

  live(
    "an endpoint that gives no answer is silent, with the system's code or the status; one that answers wrong is not",
    () =>
      Effect.gen(function* () {
        const of = Effect.fnUntraced(function* (said: Said, timeout?: Duration.Duration) {
          const server = yield* startScriptedRpc({ getLatestLedger: said })
          const { code, isSilent } = yield* Effect.flip(over([server], (rpc) => rpc.latestLedger, timeout))
          return { code, isSilent }
        })
        expect(yield* of({ raw: "<html>", status: 503 })).toEqual({ code: "HTTP 503", isSilent: true })
        expect(yield* of("silence", short)).toEqual({ code: undefined, isSilent: true })
        expect(yield* of({ error: { code: -32603, message: "no" } })).toEqual({ code: undefined, isSilent: undefined })
        expect(yield* of({ raw: "{}" })).toEqual({ code: undefined, isSilent: undefined })
        const gone = yield* over([{ url: "http://127.0.0.1:1" }], (rpc) => Effect.flip(rpc.latestLedger))
        expect(gone).toMatchObject({ code: "ECONNREFUSED", isSilent: true })
      })
  )

  live("times out at the call's deadline and bounds the answer's size", () =>
    Effect.gen(function* () {
      const server = yield* startScriptedRpc({ getLatestLedger: "silence", getFeeStats: "endless" })
      expect((yield* Effect.flip(over([server], (rpc) => rpc.latestLedger, short))).message).toBe("TimeoutError")
      // Either event ends it; otherwise it would run forever.
      expect((yield* Effect.flip(over([server], (rpc) => rpc.feeStats, short))).message).toMatch(
        /TimeoutError|too long/
      )
    })
  )
})

describe("unreliable providers", () => {
  const refused = (status: number, headers: Record<string, string> = {}): Said => ({ raw: "<html>", status, headers })

  /** Answers each call by the script; the last answer repeats. */
  const inOrder = (...answers: ReadonlyArray<Said>) => {
    let calls = 0
    return () => answers[Math.min(calls++, answers.length - 1)]!
  }
  const patient = <A, E>(
    servers: ReadonlyArray<ScriptedRpc>,
    use: (rpc: LedgerRpc["Service"]) => Effect.Effect<A, E>,
    options: { readonly seconds?: number; readonly headers?: string } = {}
  ) =>
    Effect.flatMap(LedgerRpc, use).pipe(
      Effect.provide(
        layer({
          ...optionsOf(servers),
          timeout: Duration.seconds(options.seconds ?? 5),
          headers: readRpcHeaders(options.headers ?? "") as ReadonlyArray<RpcHeader>
        })
      ),
      Effect.provide(platform)
    )

  live("retries a busy endpoint after a pause", () =>
    Effect.gen(function* () {
      const server = yield* startScriptedRpc({ getLatestLedger: inOrder(refused(429), refused(503), latest(4)) })
      expect((yield* patient([server], (rpc) => rpc.latestLedger)).sequence).toBe(4)
      expect(timesAsked(server, "getLatestLedger")).toBe(3)
      const down = yield* startScriptedRpc({ getLatestLedger: refused(502) })
      const error = yield* Effect.flip(patient([down], (rpc) => rpc.latestLedger))
      expect([error.message, timesAsked(down, "getLatestLedger")]).toEqual(["HTTP 502", 4])
    })
  )

  live("honors Retry-After, and skips an endpoint that asks for too long", () =>
    Effect.gen(function* () {
      const later = refused(429, { "retry-after": "1" })
      const server = yield* startScriptedRpc({ getLatestLedger: inOrder(later, latest(4)) })
      expect((yield* patient([server], (rpc) => rpc.latestLedger)).sequence).toBe(4)
      const strict = yield* startScriptedRpc({ getLatestLedger: refused(429, { "retry-after": "60" }) })
      yield* Effect.flip(patient([strict], (rpc) => rpc.latestLedger))
      expect(timesAsked(strict, "getLatestLedger")).toBe(1)
    })
  )

  live("does not retry permanent errors, nor any submission", () =>
    Effect.gen(function* () {
      const server = yield* startScriptedRpc({
        getLatestLedger: { raw: "<html>not here</html>", status: 404 },
        sendTransaction: refused(429)
      })
      yield* Effect.flip(patient([server], (rpc) => rpc.latestLedger))
      expect((yield* patient([server], (rpc) => rpc.send("AAAA", "00")))._tag).toBe("Lost")
      expect(server.asked.filter((method) => method !== "getNetwork")).toEqual(["getLatestLedger", "sendTransaction"])
    })
  )

  live("an endpoint that refuses every fifth call stays usable", () =>
    Effect.gen(function* () {
      let seed = 7
      const server = yield* startScriptedRpc({
        getLatestLedger: () => {
          seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
          return seed / 2_147_483_648 < 0.2 ? refused(429) : latest(4)
        }
      })
      const failed = yield* patient([server], (rpc) =>
        Effect.forEach(Array.from({ length: 100 }), () => Effect.option(rpc.latestLedger), { concurrency: 10 })
      )
      expect(failed.filter(Option.isNone).length).toBeLessThanOrEqual(1)
    })
  )

  live("hedges to the next endpoint during silence, and prefers it afterwards", () =>
    Effect.gen(function* () {
      const [silent, good] = [
        yield* startScriptedRpc({ getLatestLedger: "silence" }),
        yield* startScriptedRpc({ getLatestLedger: latest(4) })
      ]
      // Longer than this test may take: the silent one must not delay the result.
      const reported = yield* patient(
        [silent, good],
        (rpc) => Effect.forEach(["first", "second", "third"], () => rpc.latestLedger),
        { seconds: 600 }
      )
      expect(reported.map(({ endpoint }) => endpoint)).toEqual([1, 1, 1])
      expect(timesAsked(silent, "getLatestLedger")).toBe(1)
    })
  )

  live("reads a compressed answer", () =>
    Effect.gen(function* () {
      const server = yield* startScriptedRpc({ getFeeStats: "silence" })
      server.script["getLatestLedger"] = () => ({
        // The second request, after the one for the network.
        raw: gzipSync(JSON.stringify(Object.assign({ jsonrpc: "2.0", id: 2 }, latest(4)))),
        headers: { "content-encoding": "gzip" }
      })
      expect((yield* patient([server], (rpc) => rpc.latestLedger)).sequence).toBe(4)
    })
  )

  live("sends each endpoint its own headers and trace context, never logged", () =>
    Effect.gen(function* () {
      const [one, other] = [
        yield* startScriptedRpc({ getLatestLedger: refused(404) }),
        yield* startScriptedRpc({ getLatestLedger: latest(4) })
      ]
      const { host } = new URL(one.url)
      const headers = `x-api-key: for-all\n@${host} authorization: Bearer for-one`
      const error = yield* Effect.flip(patient([one], (rpc) => rpc.latestLedger, { headers }))
      yield* patient([other], (rpc) => Effect.withSpan(rpc.latestLedger, "a request"), { headers })
      expect(one.received.at(-1)).toMatchObject({ "x-api-key": "for-all", authorization: "Bearer for-one" })
      expect(other.received.at(-1)?.["authorization"]).toBeUndefined()
      expect(other.received.at(-1)).toMatchObject({ "x-api-key": "for-all" })
      expect(other.received.at(-1)?.["traceparent"]).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
      expect(JSON.stringify([error, String(error)])).not.toMatch(/for-all|for-one|127\.0\.0\.1/)
    })
  )

  live("follows no redirect, which would receive the operator's keys", () =>
    Effect.gen(function* () {
      const stranger = yield* startScriptedRpc({ getLatestLedger: latest(4) })
      const moved = refused(307, { location: stranger.url })
      const server = yield* startScriptedRpc({ getLatestLedger: moved })
      yield* Effect.flip(patient([server], (rpc) => rpc.latestLedger, { headers: "x-api-key: k" }))
      expect(stranger.asked).toEqual([])
    })
  )
})

describe("the newest ledger", () => {
  const header = (closeTime: bigint) =>
    Base64.encode(
      xdr.LedgerHeader.schema.encode({
        ledgerVersion: 23,
        previousLedgerHash: new Uint8Array(32),
        scpValue: { txSetHash: new Uint8Array(32), closeTime, upgrades: [], ext: { v: 0 } },
        txSetResultHash: new Uint8Array(32),
        bucketListHash: new Uint8Array(32),
        ledgerSeq: 7,
        totalCoins: 0n,
        feePool: 0n,
        inflationSeq: 0,
        idPool: 0n,
        baseFee: 100,
        baseReserve: 5_000_000,
        maxTxSetSize: 100,
        skipList: [1, 2, 3, 4].map(() => new Uint8Array(32)),
        ext: { v: 0 }
      } as never)
    )
  const latestOf = (result: unknown) =>
    Effect.flatMap(startScriptedRpc({ getLatestLedger: { result } }), (server) =>
      over([server], (rpc) => rpc.latestLedger)
    )

  live("the newest ledger's close time comes from the answer or its header", () =>
    Effect.gen(function* () {
      const answer = { sequence: 7, protocolVersion: 23 }
      expect((yield* latestOf({ ...answer, closeTime: "1700000000" })).closedAtSeconds).toBe(1_700_000_000)
      expect((yield* latestOf({ ...answer, headerXdr: header(1_700_000_001n) })).closedAtSeconds).toBe(1_700_000_001)
    })
  )

  live("rejects a newest ledger without a close time", () =>
    Effect.gen(function* () {
      for (const lie of [{}, { closeTime: "0" }, { closeTime: "soon" }, { headerXdr: "AAAA" }])
        expect((yield* Effect.flip(latestOf({ sequence: 7, protocolVersion: 23, ...lie })))._tag).toBe(
          "LedgerUnavailable"
        )
    })
  )
})

describe("the network check", () => {
  live("excludes an endpoint that serves another network", () =>
    Effect.gen(function* () {
      const wrong = yield* startScriptedRpc({
        getNetwork: wrongNetwork,
        getLatestLedger: latest(1),
        simulateTransaction: { result: { latestLedger: 1, error: "HostError: Error(Auth, InvalidAction)" } }
      })
      const error = yield* Effect.flip(over([wrong], (rpc) => rpc.simulate("AAAA")))
      expect(error.message).toContain("another network")
      const sent = yield* over([wrong], (rpc) => rpc.send("AAAA", "00"))
      expect(sent._tag).toBe("Lost")
      expect(new Set(wrong.asked)).toEqual(new Set(["getNetwork"]))
    })
  )

  live("uses the endpoint on the right network, and the other after recovery", () =>
    Effect.gen(function* () {
      const [wrong, right] = [
        yield* startScriptedRpc({ getNetwork: wrongNetwork, getLatestLedger: latest(1) }),
        yield* startScriptedRpc({ getLatestLedger: latest(2) })
      ]
      expect((yield* over([wrong, right], (rpc) => rpc.latestLedger)).sequence).toBe(2)
      const healed = yield* over([wrong], (rpc) =>
        Effect.gen(function* () {
          yield* Effect.flip(rpc.latestLedger)
          wrong.script["getNetwork"] = { result: { passphrase: testPassphrase, protocolVersion: 23 } }
          yield* rpc.latestLedger
          return yield* rpc.latestLedger
        })
      )
      expect(healed.sequence).toBe(1)
      expect(wrong.asked.slice(-3)).toEqual(["getNetwork", "getLatestLedger", "getLatestLedger"])
    })
  )

  live("reports each endpoint at startup: right, wrong network, unreachable [S73]", () =>
    Effect.gen(function* () {
      const servers = [
        yield* startScriptedRpc(),
        yield* startScriptedRpc({ getNetwork: wrongNetwork }),
        yield* startScriptedRpc({ getNetwork: "silence" })
      ]
      const checked = yield* checkEndpoints(optionsOf(servers, Duration.seconds(1)))
      expect(checked.map(({ state }) => state)).toEqual(["right", "wrong network", "unreachable"])
    }).pipe(Effect.provide(platform))
  )
})

const channel = Keypair.random().publicKey()
const envelopeOf = (sequence: bigint) =>
  encodeEnvelope(withSignatures(cancelTransaction({ channel, sequence, bounds: { ledgerMax: 100, timeMax: 0n } }), []))
const resultXdr = (code: number) =>
  Base64.encode(
    xdr.TransactionResult.schema.encode({
      feeCharged: 321n,
      result: code === 0 ? { code, results: [] } : { code },
      ext: { v: 0 }
    } as never)
  )
const hashOf = (text: string) =>
  Effect.map(
    Crypto,
    (crypto) =>
      hashesOf(
        crypto,
        networkIdOf(crypto, testPassphrase),
        xdr.TransactionEnvelope.schema.decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)))
      )!.innerHash
  ).pipe(Effect.provide(platform))

describe("a transaction's outcome", () => {
  const common = { latestLedger: 50, oldestLedger: 1, ledger: 40, createdAt: "1700000000" }

  live("reads a transaction's outcome from the result of the requested envelope", () =>
    Effect.gen(function* () {
      const envelopeXdr = envelopeOf(7n)
      const hash = yield* hashOf(envelopeXdr)
      const server = yield* startScriptedRpc({
        getTransaction: { result: { ...common, status: "SUCCESS", envelopeXdr, resultXdr: resultXdr(0) } }
      })
      const answer = yield* over([server], (rpc) => rpc.transaction(hash))
      expect(answer).toMatchObject({
        _tag: "Included",
        executed: { ledger: 40, innerHash: hash, feeChargedStroops: 321n, succeeded: true }
      })
      // A meta that cannot be read takes nothing from the status.
      if (answer._tag === "Included") expect(Option.isNone(answer.executed.transfers)).toBe(true)
      // For a bumped transaction the fee is the bump's; the inner result contains none, or the cost at the first bid.
      const bumped = Base64.encode(
        xdr.TransactionResult.schema.encode({
          feeCharged: 654n,
          result: {
            code: 1,
            innerResultPair: {
              transactionHash: new Uint8Array(32),
              result: { feeCharged: 100n, result: { code: 0, results: [] }, ext: { v: 0 } }
            }
          },
          ext: { v: 0 }
        } as never)
      )
      server.script["getTransaction"] = {
        result: { ...common, status: "SUCCESS", envelopeXdr, resultXdr: bumped }
      }
      expect(yield* over([server], (rpc) => rpc.transaction(hash))).toMatchObject({
        executed: { feeChargedStroops: 654n, succeeded: true }
      })
      server.script["getTransaction"] = {
        result: { ...common, status: "FAILED", envelopeXdr, resultXdr: resultXdr(-5) }
      }
      expect(yield* over([server], (rpc) => rpc.transaction(hash))).toMatchObject({ executed: { succeeded: false } })
      server.script["getTransaction"] = { result: { status: "NOT_FOUND", latestLedger: 50, oldestLedger: 1 } }
      expect(yield* over([server], (rpc) => rpc.transaction(hash))).toEqual({
        _tag: "NotFound",
        latestLedger: 50,
        oldestLedger: 1
      })
    })
  )

  live("rejects an answer that is inconsistent or about another transaction", () =>
    Effect.gen(function* () {
      const envelopeXdr = envelopeOf(7n)
      const hash = yield* hashOf(envelopeXdr)
      const lies: ReadonlyArray<readonly [string, Record<string, unknown>]> = [
        ["another envelope", { status: "SUCCESS", envelopeXdr: envelopeOf(8n), resultXdr: resultXdr(0) }],
        ["no envelope", { status: "SUCCESS", resultXdr: resultXdr(0) }],
        ["success with a failed result", { status: "SUCCESS", envelopeXdr, resultXdr: resultXdr(-5) }],
        ["failure with a success", { status: "FAILED", envelopeXdr, resultXdr: resultXdr(0) }],
        ["no result", { status: "SUCCESS", envelopeXdr }],
        ["no ledger", { status: "SUCCESS", envelopeXdr, resultXdr: resultXdr(0), ledger: undefined }],
        ["an unknown status", { status: "PERHAPS", envelopeXdr, resultXdr: resultXdr(0) }]
      ]
      for (const [name, lie] of lies) {
        const server = yield* startScriptedRpc({ getTransaction: { result: { ...common, ...lie } } })
        const error = yield* Effect.flip(over([server], (rpc) => rpc.transaction(hash)))
        expect([name, error._tag]).toEqual([name, "LedgerUnavailable"])
      }
    })
  )
})

describe("a submission", () => {
  const hash = "ab".repeat(32)
  const sending = (server: ScriptedRpc, other?: ScriptedRpc) =>
    over(other === undefined ? [server] : [server, other], (rpc) => rpc.send("AAAA", hash), Duration.seconds(1))

  live("a submission goes to one endpoint, once, whatever the answer [S91]", () =>
    Effect.gen(function* () {
      for (const failure of [
        "silence",
        "hangup",
        { raw: "", status: 503 },
        { error: { code: -32603, message: "no" } },
        { otherId: { status: "PENDING", hash } }
      ] as ReadonlyArray<Said>) {
        const [bad, other] = [
          yield* startScriptedRpc({ sendTransaction: failure }),
          yield* startScriptedRpc({ sendTransaction: { result: { status: "PENDING", hash } } })
        ]
        expect((yield* sending(bad, other))._tag).toBe("Lost")
        expect(timesAsked(bad, "sendTransaction")).toBe(1)
        expect(other.asked).toEqual([])
      }
    })
  )

  live("a submission's status is the node's; one about another transaction is ignored", () =>
    Effect.gen(function* () {
      const server = yield* startScriptedRpc()
      const said = (result: unknown) => {
        server.script["sendTransaction"] = { result }
        return sending(server)
      }
      expect((yield* said({ status: "PENDING", hash }))._tag).toBe("Pending")
      expect((yield* said({ status: "DUPLICATE", hash }))._tag).toBe("Duplicate")
      expect((yield* said({ status: "TRY_AGAIN_LATER", hash }))._tag).toBe("TryAgainLater")
      expect(yield* said({ status: "ERROR", hash, errorResultXdr: resultXdr(-5) })).toEqual({
        _tag: "Error",
        code: "txBadSeq"
      })
      expect(yield* said({ status: "ERROR", hash, errorResultXdr: "AAAA" })).toEqual({ _tag: "Error", code: "unknown" })
      expect((yield* said({ status: "PENDING", hash: "cd".repeat(32) }))._tag).toBe("Lost")
      expect((yield* said({ status: "DONE", hash }))._tag).toBe("Lost")
    })
  )
})

describe("a fee refusal", () => {
  const insufficient = (feeCharged: bigint) =>
    Base64.encode(xdr.TransactionResult.schema.encode({ feeCharged, result: { code: -9 }, ext: { v: 0 } } as never))
  const sorobanData = {
    ext: { v: 0 },
    resources: { footprint: { readOnly: [], readWrite: [] }, instructions: 1, diskReadBytes: 1, writeBytes: 1 },
    resourceFee: 40_000n
  }
  const bumped = (ext: unknown) => {
    const plain = cancelTransaction({ channel, sequence: 7n, bounds: { ledgerMax: 100, timeMax: 0n } })
    const inner = withSignatures({ ...plain, ext } as never, [])
    return encodeEnvelope(
      bumpWithSignature(feeBump(inner, channel, 40_200n), {
        publicKey: new Uint8Array(32),
        signature: new Uint8Array(64)
      })
    )
  }

  live("a fee refusal asks for the node's fee minus the resource fee", () =>
    Effect.gen(function* () {
      const hash = "ab".repeat(32)
      const server = yield* startScriptedRpc()
      const asked = Effect.fnUntraced(function* (feeCharged: bigint, envelope: string) {
        server.script["sendTransaction"] = {
          result: { status: "ERROR", hash, errorResultXdr: insufficient(feeCharged) }
        }
        return yield* over([server], (rpc) => rpc.send(envelope, hash))
      })
      const error = { _tag: "Error", code: "txInsufficientFee" }
      const settlement = bumped({ v: 1, sorobanData })
      expect(yield* asked(41_000n, settlement)).toEqual({ ...error, askedStroops: 1_000n })
      expect(yield* asked(1_000n, bumped({ v: 0 }))).toEqual({ ...error, askedStroops: 1_000n })
      expect(yield* asked(0n, settlement)).toEqual(error)
    })
  )
})

describe("a simulation", () => {
  const data = (resourceFee: bigint) =>
    Base64.encode(
      xdr.SorobanTransactionData.schema.encode({
        ext: { v: 0 },
        resources: { footprint: { readOnly: [], readWrite: [] }, instructions: 1, diskReadBytes: 1, writeBytes: 1 },
        resourceFee
      } as never)
    )
  const success = {
    latestLedger: 5,
    transactionData: data(33_053n),
    minResourceFee: "33053",
    events: [],
    results: [{ auth: [], xdr: "" }]
  }
  const simulated = (result: unknown) =>
    Effect.flatMap(startScriptedRpc({ simulateTransaction: { result } }), (server) =>
      over([server], (rpc) => rpc.simulate("AAAA"))
    )

  live("a simulation is a success, a host refusal, or requires a restore [S77, S266]", () =>
    Effect.gen(function* () {
      expect(yield* simulated(success)).toMatchObject({
        _tag: "Simulated",
        latestLedger: 5,
        resourceFeeStroops: 33_053n
      })
      expect(
        yield* simulated({
          latestLedger: 5,
          error:
            'HostError: Error(Contract, #10)\n\nEvent log (newest first):\n 0: data:["balance is not sufficient to spend", 1]'
        })
      ).toEqual({
        _tag: "Refused",
        latestLedger: 5,
        code: "Error(Contract, #10)",
        detail: "balance is not sufficient to spend"
      })
      expect(
        (yield* simulated({ ...success, restorePreamble: { transactionData: "AAAA", minResourceFee: "1" } }))._tag
      ).toBe("RestoreRequired")
    })
  )

  live("a simulation with invalid figures or bytes decides nothing", () =>
    Effect.gen(function* () {
      const lies: ReadonlyArray<readonly [string, unknown]> = [
        ["no resource data", { latestLedger: 5 }],
        ["resource data that is none", { ...success, transactionData: "AAAA" }],
        ["two fees that differ", { ...success, minResourceFee: "1" }],
        ["a negative fee", { ...success, transactionData: data(-1n), minResourceFee: "-1" }],
        ["a fee in words", { ...success, minResourceFee: "cheap" }],
        ["events that are not base64", { ...success, events: ["%"] }]
      ]
      for (const [name, lie] of lies)
        expect([name, (yield* Effect.flip(simulated(lie)))._tag]).toEqual([name, "LedgerUnavailable"])
    })
  )

  it("keeps a bounded excerpt of the host's message", () => {
    const { code, detail } = readHostError(
      `HostError: Error(Budget, ExceededLimit) data:["${"x".repeat(200)}"] ${"y".repeat(10_000)}`
    )
    expect([code, detail.length]).toEqual(["Error(Budget, ExceededLimit)", 200])
    expect(readHostError("anything else")).toEqual({ code: "Error(Unknown, Unknown)", detail: "" })
  })
})

describe("ledger entries", () => {
  live("does not read other ledger entries as accounts", () =>
    Effect.gen(function* () {
      const server = yield* startScriptedRpc({
        getLedgerEntries: { result: { latestLedger: 3, entries: [{ key: "AAAA", xdr: "AAAA" }] } }
      })
      expect((yield* Effect.flip(over([server], (rpc) => rpc.accounts([channel]))))._tag).toBe("LedgerUnavailable")
      server.script["getLedgerEntries"] = { result: { latestLedger: 3, entries: null } }
      expect((yield* over([server], (rpc) => rpc.accounts([channel]))).accounts.size).toBe(0)
    })
  )
})
