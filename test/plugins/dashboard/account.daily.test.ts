// An account's session in a browser, over whole facilitators: how it is opened, which data it may and may not read, and
// how it ends. The account signs like a wallet, with the official library.
import { expect, it } from "@effect/vitest"
import { Keypair, Networks, xdr } from "@stellar/stellar-sdk"
import { Clock, Context, Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import { describe } from "vitest"
import { type AccountChallenge, AccountChallenges } from "../../../kernel/accounts/AccountChallenges.ts"
import { AccountSeal } from "../../../kernel/accounts/AccountSeal.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { invocationOf, type Payer, signAuthorization } from "../../../runtime/redteam/authorization.ts"
import { contractUsdc, makeSmartWallet } from "../../support/smartWallet.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { describedErrors } from "../analytics/support.ts"
import { eventually } from "../../support/eventually.ts"

const shop = "shop-secret-0123456789"
const environment = { FACILITATOR_API_KEYS: `shop:${shop}` }
const set = ["plugins=[ledger-local,x402-exact,catalog,analytics,dashboard]"]
const fromPage = { "content-type": "application/json", "x-tollkeeper-page": "1" }

const signed = (by: Keypair, challenge: string): string =>
  Buffer.from(by.sign(createHash("sha256").update(`Stellar Signed Message:\n${challenge}`).digest())).toString("base64")

type Wallet = Payer & { readonly contract: string }

/** Signs an unsigned authorization like a contract account's wallet. */
const authorized = (wallet: Wallet, unsigned: string, functionName?: string): string => {
  const entry = xdr.SorobanAuthorizationEntry.fromXdr(unsigned, "base64") as any
  const { nonce, signatureExpirationLedger } = entry.credentials.address
  const call = entry.rootInvocation.function.contractFn
  return signAuthorization({
    payer: wallet,
    invocation:
      functionName === undefined
        ? entry.rootInvocation
        : invocationOf(new xdr.InvokeContractArgs({ ...call, functionName })),
    nonce: BigInt(nonce),
    expirationLedger: signatureExpirationLedger,
    networkPassphrase: Networks.TESTNET
  }).toXdr("base64")
}

/** A browser at one name of the facilitator; it waits as long as Retry-After asks. */
const browserAt = (facilitator: Facilitator, headers: Record<string, string> = fromPage, name = "127.0.0.1") => {
  const post = (path: string, body: unknown): Effect.Effect<Answer> =>
    Effect.gen(function* () {
      const url = facilitator.url.replace("127.0.0.1", name) + path
      const response = yield* Effect.promise(() => fetch(url, { method: "POST", headers, body: JSON.stringify(body) }))
      const text = yield* Effect.promise(() => response.text())
      if (response.status !== 429)
        return { status: response.status, headers: response.headers, text, json: JSON.parse(text) }
      yield* Effect.sleep(Number(response.headers.get("retry-after")) * 1_000)
      return yield* post(path, body)
    })
  const challenge = (account: string) =>
    Effect.map(post("/dashboard/account/challenge", { account }), ({ json }): string => json.challenge)
  const answer = (account: string, text: string, signature: string) =>
    post("/dashboard/account", { account, challenge: text, signature })
  const signIn = Effect.fnUntraced(function* (by: Keypair) {
    const text = yield* challenge(by.publicKey())
    const opened = yield* answer(by.publicKey(), text, signed(by, text))
    expect(opened.json).toMatchObject({ account: by.publicKey() })
    const sent = opened.headers.get("set-cookie") ?? ""
    expect(sent).toMatch(/^tollkeeper_account=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/)
    return { challenge: text, cookie: sent.split(";", 1)[0]! }
  })
  return { post, challenge, answer, signIn }
}

const signOut = (facilitator: Facilitator, cookie: string, path = "/dashboard/account") =>
  facilitator.ask(path, { method: "DELETE", headers: { "x-tollkeeper-page": "1", cookie } })

const own = ["/analytics/v1/account", "/analytics/v1/account/transactions", "/catalog/v1/account"]

const statuses = (facilitator: Facilitator, cookie: string, paths: ReadonlyArray<string> = own) =>
  Effect.forEach(paths, (path) =>
    Effect.map(facilitator.ask(path, { headers: { cookie } }), ({ status }) => `${status} ${path}`)
  )

const catalog = {
  info: { input: { type: "http", method: "GET" }, output: { type: "json", example: {} } },
  schema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", properties: { input: {} } }
}

const pay = Effect.fnUntraced(function* (facilitator: Facilitator, payTo: string, resourceUrl: string, info?: unknown) {
  const payer = yield* facilitator.account()
  const { body } = yield* facilitator.payment({
    payer,
    payTo,
    amount: 10_000n,
    resourceUrl,
    extensions: { catalog: info === undefined ? catalog : { info, schema: { type: "string" } } }
  })
  expect((yield* facilitator.settle(body, { authorization: `Bearer ${shop}` })).json.success).toBe(true)
})

/** Polls until the condition holds: analytics and the catalog follow payments within moments. */
const until = (facilitator: Facilitator, path: string, cookie: string, holds: (json: any) => boolean) =>
  eventually(facilitator.ask(path, { headers: { cookie } }), (answer) => answer.status === 200 && holds(answer.json))

describe.each(databaseKinds)("an account's session on %s", (database) => {
  it.live(
    "an account session reads only its own sales, refusals and listings",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, environment, set })
        const errors = describedErrors((yield* facilitator.ask("/openapi.json")).json)
        const [seller, rival] = [yield* facilitator.account(), yield* facilitator.account()]
        yield* pay(facilitator, seller.publicKey(), "http://127.0.0.1:9/mine")
        yield* pay(facilitator, rival.publicKey(), "http://127.0.0.1:9/theirs")
        yield* pay(facilitator, seller.publicKey(), "http://127.0.0.1:9/refused", 5)
        const { cookie } = yield* browserAt(facilitator).signIn(seller)
        const sales = yield* until(
          facilitator,
          "/analytics/v1/account/transactions",
          cookie,
          ({ items }) => items.length === 2
        )
        const listings = yield* until(
          facilitator,
          "/catalog/v1/account",
          cookie,
          ({ items, listings }) => items.length === 2 && listings.length === 1
        )
        const totals = yield* facilitator.ask("/analytics/v1/account", { headers: { cookie } })
        for (const [path, answer] of [
          ["/analytics/v1/account/transactions", sales],
          ["/catalog/v1/account", listings],
          ["/analytics/v1/account", totals]
        ] as const)
          expect([path, errors(path, answer)]).toEqual([path, []])
        expect(sales.json.items.map((one: any) => one.pay_to)).toEqual([seller.publicKey(), seller.publicKey()])
        expect(totals.json).toMatchObject({ address: seller.publicKey(), total_transactions: "2" })
        expect(listings.json.listings).toMatchObject([{ resource: "http://127.0.0.1:9/mine", status: "active" }])
        expect(listings.json.items).toMatchObject([
          { resource: "http://127.0.0.1:9/refused", decision: "rejected", reason: "schema_invalid" },
          { resource: "http://127.0.0.1:9/mine", decision: "listed" }
        ])
        // Whichever account the query names, the response is about the session's account.
        const asked = yield* facilitator.ask(`/analytics/v1/account/transactions?payTo=${rival.publicKey()}`, {
          headers: { cookie }
        })
        const idsOf = ({ json }: Answer) => json.items.map(({ id }: any) => id)
        expect(idsOf(asked)).toEqual(idsOf(sales))
        for (const { text } of [sales, listings, totals, asked]) {
          expect(text).not.toContain(rival.publicKey())
          expect(text).not.toContain("theirs")
        }
        const hash = sales.json.items[0].transaction_hash
        const others = [
          `/analytics/v1/transactions?payTo=${seller.publicKey()}`,
          `/analytics/v1/sellers/${rival.publicKey()}`,
          "/analytics/v1/overview",
          "/analytics/v1/events",
          "/catalog/v1/observations?url=http://127.0.0.1:9/mine",
          `/settlements?hash=${hash}`,
          "/settlements/events",
          "/supported"
        ]
        expect(yield* statuses(facilitator, cookie, others)).toEqual(others.map((path) => `401 ${path}`))
        const table = yield* facilitator.ask("/analytics/v1/account/transactions", {
          headers: { cookie, accept: "text/csv" }
        })
        expect(table.text.trim().split("\r\n")).toHaveLength(3)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "an account session needs one timely signature of this host's challenge",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, environment, set, channels: 1 })
        const browser = browserAt(facilitator)
        const [seller, rival] = [Keypair.random(), Keypair.random()]
        const account = seller.publicKey()
        const refused = (answer: Answer) => {
          expect([answer.status, answer.headers.get("set-cookie")]).toEqual([403, null])
          return answer.json.message as string
        }
        const text = yield* browser.challenge(account)
        expect(text).toContain(`${account} signs in on ledger:testnet until 20`)
        const right = signed(seller, text)
        const plain = Buffer.from(seller.sign(Buffer.from(text))).toString("base64")
        for (const signature of [signed(rival, text), signed(seller, `${text} `), plain, "", "%%%"])
          expect(refused(yield* browser.answer(account, text, signature))).toMatch(/^the signature is not/)
        // Another account's name over this account's answer, and the altered message.
        expect(refused(yield* browser.answer(rival.publicKey(), text, right))).toMatch(/names another account/)
        const forged = text.replace(account, rival.publicKey())
        expect(refused(yield* browser.answer(rival.publicKey(), forged, signed(rival, forged)))).toMatch(
          /^this facilitator did not issue/
        )
        const elsewhere = browserAt(facilitator, fromPage, "localhost")
        expect(refused(yield* elsewhere.answer(account, text, right))).toMatch(/another name of this facilitator/)

        // Otherwise ours: expired, and for another network.
        const { host } = new URL(facilitator.url)
        const challenges = Context.get(facilitator.services as Context.Context<AccountChallenges>, AccountChallenges)
        const made = (of: AccountChallenges["Service"]) =>
          Effect.map(of.make("session", host, account), (one) => (typeof one === "string" ? one : one.challenge))
        const now = yield* Clock.currentTimeMillis
        const clock = yield* Clock.Clock
        // An end in the past, and an end from a clock that was ahead.
        for (const millis of [-600_001, 360_000]) {
          const wrong = { ...clock, currentTimeMillis: Effect.succeed(now + millis) } as Clock.Clock
          const ended = yield* Effect.provideService(made(challenges), Clock.Clock, wrong)
          expect(refused(yield* browser.answer(account, ended, signed(seller, ended)))).toMatch(/has expired/)
        }
        const network = Context.get(facilitator.services as Context.Context<Network>, Network)
        const public_ = yield* Layer.build(
          Layer.fresh(AccountChallenges.layer.pipe(Layer.provide(AccountSeal.layer)))
        ).pipe(
          Effect.provideService(Network, { ...network, id: "ledger:pubnet" }),
          Effect.provideContext(facilitator.services as Context.Context<any>)
        )
        const ofPubnet = yield* made(Context.get(public_ as Context.Context<AccountChallenges>, AccountChallenges))
        expect(ofPubnet).toContain("ledger:pubnet")
        expect(refused(yield* browser.answer(account, ofPubnet, signed(seller, ofPubnet)))).toMatch(/another network/)

        // Only our own page may do it: no form, and no page of another origin.
        for (const headers of [
          { "content-type": "application/json" },
          { ...fromPage, origin: "https://evil.example" }
        ] as ReadonlyArray<Record<string, string>>)
          expect((yield* browserAt(facilitator, headers).answer(account, text, right)).status).toBe(403)
        expect((yield* browser.post("/dashboard/account/challenge", { account: "GNOBODY" })).status).toBe(400)
        // A challenge for another purpose, and an overlong one.
        const ofReceipts = (yield* challenges.make("receipts", host, account)) as AccountChallenge
        const { challenge: reading } = ofReceipts
        expect(refused(yield* browser.answer(account, reading, signed(seller, reading)))).toMatch(/another purpose/)
        const long = text.replace("Tollkeeper at ", `Tollkeeper at ${"x".repeat(600)}`)
        expect(refused(yield* browser.answer(account, long, signed(seller, long)))).toMatch(
          /^this facilitator did not issue/
        )

        // After all of that, the right answer opens one session, but not a second.
        const opened = yield* browser.answer(account, text, right)
        expect(opened.status).toBe(200)
        expect(refused(yield* browser.answer(account, text, right))).toMatch(/already answered/)
        const cookie = opened.headers.get("set-cookie")!.split(";", 1)[0]!
        expect((yield* signOut(facilitator, cookie)).json).toEqual({ account: null, until: null })
        expect(refused(yield* browser.answer(account, text, right))).toMatch(/already answered/)
        const [row] = yield* facilitator.sql<{ text: string }>`select row_to_json(s)::text as text
          from kernel_account_sessions s`
        expect(row!.text).not.toContain(cookie.split("=")[1]!)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a contract account signs in by an authorization that its contract accepts",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, environment, set, channels: 1 })
        const browser = browserAt(facilitator)
        const funder = yield* facilitator.account()
        const wallet = yield* Effect.promise(() => makeSmartWallet(facilitator.ledgerUrl, funder, 5n))
        const other = yield* Effect.promise(() => makeSmartWallet(facilitator.ledgerUrl, funder, 5n))
        const ask = (account: string) =>
          Effect.map(
            browser.post("/dashboard/account/challenge", { account }),
            ({ json }) => json as { challenge: string; authorization: string }
          )
        const answer = (of: { challenge: string }, authorization: string, account = wallet.contract) =>
          Effect.map(browser.answer(account, of.challenge, authorization), ({ json, status }) => [status, json.message])
        const asked = yield* ask(wallet.contract)
        const not = [403, expect.stringMatching(/contract does not accept this authorization/)]
        for (const wrong of [
          asked.authorization,
          authorized(other, asked.authorization),
          authorized(wallet, (yield* ask(wallet.contract)).authorization),
          authorized(other, (yield* ask(other.contract)).authorization),
          authorized(wallet, asked.authorization, "approve"),
          signed(Keypair.random(), asked.challenge),
          ""
        ])
          expect(yield* answer(asked, wrong)).toEqual(not)
        const opened = yield* browser.answer(wallet.contract, asked.challenge, authorized(wallet, asked.authorization))
        expect([opened.status, opened.json.account]).toEqual([200, wallet.contract])
        expect(yield* answer(asked, authorized(wallet, asked.authorization))).toEqual([
          403,
          expect.stringMatching(/already answered/)
        ])
        expect(yield* Effect.promise(() => contractUsdc(facilitator.ledgerUrl, wallet.contract))).toBe(5n)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "an account session ends by sign-out, by sign-out everywhere, and by age",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, environment, set, channels: 1 })
        const browser = browserAt(facilitator)
        const seller = Keypair.random()
        const [first, second, third] = [
          yield* browser.signIn(seller),
          yield* browser.signIn(seller),
          yield* browser.signIn(Keypair.random())
        ]
        const path = ["/catalog/v1/account"]
        const statusOf = (cookie: string) =>
          Effect.map(statuses(facilitator, cookie, path), ([line]) => line!.slice(0, 3))
        expect(yield* statusOf(first!.cookie)).toBe("200")
        // A page of another site cannot end it.
        const foreign = yield* facilitator.ask("/dashboard/account", {
          method: "DELETE",
          headers: { cookie: first!.cookie }
        })
        expect([foreign.status, yield* statusOf(first!.cookie)]).toEqual([403, "200"])
        const closed = yield* signOut(facilitator, first!.cookie)
        expect(closed.headers.get("set-cookie")).toMatch(/^tollkeeper_account=; .*Max-Age=0$/)
        expect([yield* statusOf(first!.cookie), yield* statusOf(second!.cookie)]).toEqual(["401", "200"])
        // An ended session does not end others.
        yield* signOut(facilitator, first!.cookie, "/dashboard/account?everywhere=1")
        expect(yield* statusOf(second!.cookie)).toBe("200")
        const again = yield* browser.signIn(seller)
        yield* signOut(facilitator, again.cookie, "/dashboard/account?everywhere=1")
        expect([yield* statusOf(second!.cookie), yield* statusOf(again.cookie)]).toEqual(["401", "401"])
        expect(yield* statusOf(third!.cookie)).toBe("200")
        const token = third!.cookie.split("=")[1]!
        for (const forged of [
          token.slice(0, -1) + (token.endsWith("A") ? "B" : "A"),
          `${"A".repeat(32)}.${token.split(".")[1]}`,
          token.split(".")[0]!
        ])
          expect(yield* statusOf(`tollkeeper_account=${forged}`)).toBe("401")
        expect(yield* statusOf(`tollkeeper_session=${token}`)).toBe("401")
        // A session of plain HTTP is not valid over TLS.
        expect(yield* statusOf(`__Host-tollkeeper_account=${token}`)).toBe("401")
        // With the rows unreachable a session is an error, not signed out, and an unknown cookie costs no query.
        yield* facilitator.sql`alter table kernel_account_sessions rename to out_of_reach`
        expect(yield* statusOf(third!.cookie)).toBe("503")
        expect(yield* statusOf(`tollkeeper_account=${"A".repeat(32)}.${token.split(".")[1]}`)).toBe("401")
        yield* facilitator.sql`alter table out_of_reach rename to kernel_account_sessions`
        const endsIn = (seconds: number) =>
          Effect.andThen(
            facilitator.sql`update kernel_account_sessions set until = now() + ${seconds} * interval '1 second'
              where account <> ${seller.publicKey()}`,
            statusOf(third!.cookie)
          )
        // Twelve hours, and five minutes of clock skew: a longer session comes from a clock that was ahead.
        expect(yield* endsIn(12 * 3_600 + 290)).toBe("200")
        expect(yield* endsIn(12 * 3_600 + 400)).toBe("401")
        expect(yield* endsIn(-1)).toBe("401")
        const none = (yield* facilitator.ask("/dashboard/account", { headers: { cookie: third!.cookie } })).json
        expect(none).toEqual({ account: null, until: null })
      }).pipe(Effect.scoped),
    240_000
  )
})
