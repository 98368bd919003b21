// Removes the guards of the tools that pay for agents, one at a time: what an HTTP request may contain, the comparison
// of the seller's terms with the catalog, at most one signature per purchase, and when a signer may pay.
import type { Change, Mutation } from "./Mutation.ts"

const vitest = (...files: ReadonlyArray<string>) => [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  ...files
]

const http = vitest("test/plugins/mcp-tools-pay/http.daily.test.ts")
const hostile = vitest("test/plugins/mcp-tools-pay/hostile.daily.test.ts")
const transports = vitest("test/plugins/mcp-tools/transports.daily.test.ts")
const stringified = vitest("test/plugins/mcp-tools/stringified.test.ts")
const composition = vitest("test/plugins/mcp-tools/composition.test.ts")

const inFile =
  (file: string, catcher: ReadonlyArray<string>) =>
  (name: string, from: string, to: string): Mutation => ({
    name,
    changes: [{ file: `plugins/${file}`, from, to }],
    catcher
  })

const call = inFile("mcp-tools-pay/call/httpCall.ts", http)
const seller = inFile("mcp-tools-pay/seller/httpSeller.ts", http)
const wire = inFile("mcp-tools-pay/seller/HttpWire.ts", http)
const terms = inFile("mcp-tools-pay/seller/compareTerms.ts", http)
const verify = inFile("mcp-tools-pay/call/PaymentPolicyCheck.ts", http)
const ofTest =
  (files: ReadonlyArray<string>, folder = "", environment: Readonly<Record<string, string>> = {}) =>
  (name: string, from: string, to: string, file: string): Mutation => ({
    name,
    changes: [{ file: `plugins/${folder}${file}`, from, to }],
    catcher: vitest(...files),
    environment
  })
const delivery = ofTest(["test/plugins/mcp-tools-pay/delivery.daily.test.ts"], "mcp-tools-pay/")
const crooks = ofTest(["test/plugins/mcp-tools-pay/crooks.slow.test.ts"], "mcp-tools-pay/", {
  TOLLKEEPER_TEST_SLOW: "only"
})
const reference = ofTest(["test/plugins/mcp-tools-pay/reference.daily.test.ts"])
const canonical = ofTest(["test/plugins/mcp-tools-pay/canonical.test.ts"])
const restart = ofTest(["test/plugins/mcp-tools-pay/restart.slow.test.ts"], "mcp-tools-pay/", {
  TOLLKEEPER_TEST_SLOW: "only"
})
const channels = ofTest(["test/plugins/mcp-tools-pay/channels.daily.test.ts"], "mcp-tools-pay/")
const kept = ofTest(["test/plugins/mcp-tools-pay/kept.daily.test.ts"], "mcp-tools-pay/")
const invocation = ofTest(["test/plugins/mcp-tools-pay/Invocation.test.ts"], "mcp-tools-pay/")
const words = ofTest(["test/plugins/mcp-tools-pay/words.test.ts"], "mcp-tools-pay/")
const policy = (name: string, from: string, to: string, file = "policy/Policy.ts"): Mutation =>
  inFile(
    `mcp-tools-pay/${file}`,
    vitest("test/plugins/mcp-tools-pay/policy.daily.test.ts", "test/plugins/mcp-tools-pay/decide.test.ts")
  )(name, from, to)
const sellerWire = ofTest(["test/plugins/mcp-tools-pay/SellerWire.test.ts"], "mcp-tools-pay/seller/")
const stateless = ofTest(["test/plugins/catalog/StatelessRevision.test.ts"], "catalog/ownership/")
const readToResult = ofTest(["test/plugins/mcp-tools-pay/readToResult.test.ts"], "mcp-tools-pay/seller/")
const bodies = ofTest(["test/plugins/mcp-tools-pay/bodies.daily.test.ts"], "mcp-tools-pay/seller/")
const recovering = inFile("mcp-tools-pay/call/makePurchase.ts", vitest("test/plugins/mcp-tools-pay/recovered.test.ts"))
const eras = ofTest(["test/plugins/mcp-tools-pay/eras.daily.test.ts"], "mcp-tools-pay/seller/")
const question = (name: string, from: string, to: string, file: string, ...more: ReadonlyArray<Change>): Mutation => ({
  name,
  changes: [{ file, from, to }, ...more].map((one) => ({ ...one, file: `plugins/mcp-tools-pay/${one.file}` })),
  catcher: vitest("test/plugins/mcp-tools-pay/question.daily.test.ts")
})
const requests = ofTest(["test/plugins/mcp-tools-pay/approvals.test.ts"], "mcp-tools-pay/")
const holds = ofTest(["test/plugins/mcp-tools-pay/budget.daily.test.ts"], "mcp-tools-pay/")
const agents = (name: string, from: string, to: string, file: string): Mutation => ({
  name,
  changes: [{ file: `plugins/mcp-tools-pay/${file}`, from, to }],
  catcher: ["test/simulation/run.ts", "--agents", "--runs", "60"]
})
const sessions = inFile("mcp-tools/server/Sessions.ts", transports)
const pays = inFile("mcp-tools-pay/payForAgents.ts", http)

export const mutations: ReadonlyArray<Mutation> = [
  {
    name: "an authorization is written in a version that the network does not take",
    changes: [
      {
        file: "kernel/stellar/addressCredentials.ts",
        from: "protocolVersion >= ADDRESS_V2_SINCE",
        to: "protocolVersion > 0"
      }
    ],
    catcher: vitest("test/kernel/stellar/addressCredentials.test.ts")
  },
  pays("http: fetched where it is not enabled", "if (http.isEnabled)", "if (!http.isEnabled || http.isEnabled)"),
  call("http: headers that pay are sent", "|| reservedHeaders.has(name)", ""),
  call("http: any header is sent", "!allowed.includes(name) ||", ""),
  call("http: a header's value ends the line", "/^[\\x20-\\x7e]*$/.test(value)", "/^/.test(value)"),
  call("http: parameters make another path", "encodeURIComponent(value)", "value"),
  call("http: a parameter may be missing", 'value === "" ||', ""),
  call("http: unknown parameters are dropped", "return left.size === 0", "return left.size >= 0"),
  call("http: a GET has a body", 'if (method === "GET")', 'if (method === "")'),
  call("http: any method is asked", "listed.find((one) => one.method === method)", "{ ...listed[0]!, method }"),
  seller("http: a redirect is followed", "redirectsMax: 0,", "redirectsMax: 3,"),
  wire("http: any status asks for payment", "if (status !== 402)", "if (status === 0)"),
  wire("http: copies may differ", "canonicalJson(inBody) !== canonicalJson(inHeader)", "false"),
  wire(
    "http: the first version's amount is any",
    'readOption({ ...sent, amount: sent["maxAmountRequired"] })',
    "readOption(sent)"
  ),
  wire(
    "http: what asks for payment is read without a bound",
    "Result.getOrUndefined(readJson(withoutMark(bytes)))",
    "JSON.parse(new TextDecoder().decode(bytes))"
  ),
  terms("terms: the amount is not compared", '"amount", "maxTimeoutSeconds"', '"maxTimeoutSeconds"'),
  terms("terms: the recipient is not compared", '"payTo", "amount"', '"amount"'),
  terms("terms: the timeout is not compared", '"maxTimeoutSeconds", "feesSponsored"', '"feesSponsored"'),
  terms("terms: extension data is not compared", '"feesSponsored", "extra"]', '"feesSponsored"]'),
  delivery(
    "request: another listing of one address is another call",
    'resource: "", args',
    "resource: input.ref, args",
    "call/fetchResource.ts"
  ),
  call("request: half a character is a path parameter", "|| /\\p{Surrogate}/u.test(value)", ""),
  delivery(
    "request: another order of its query is another call",
    "Object.keys(query).toSorted()",
    "Object.keys(query)",
    "call/httpCall.ts"
  ),
  delivery(
    "request: another case of a header is another call",
    "name.toLowerCase(), value",
    "name, value",
    "call/fetchResource.ts"
  ),
  terms("terms: the asset is not compared", "&& asset === option.asset", ""),
  terms("terms: two offers of one kind are paid", "offers.length > 1", "offers.length > 2"),
  terms("terms: any extension may demand", "...demanded]", "]"),
  terms("terms: another resource is paid for", '...(isOurs ? [] : ["resource.url"])', ""),
  verify(
    "verification: the ledger is not asked",
    "return yield* Effect.repeat(once(named, open), {",
    "if (end > 0) return { transaction: named, isNamed: true }; return yield* Effect.repeat(once(named, open), {"
  ),
  delivery(
    "verification: an unreadable receipt drops the content",
    "const proof = yield* find(word?.transaction, open)",
    "const proof = word === undefined ? undefined : yield* find(word.transaction, open)",
    "call/PaymentPolicyCheck.ts"
  ),
  delivery(
    "verification: another payer's receipt passes",
    "word.payer === undefined || word.payer === authorization.payer",
    "true",
    "call/PaymentPolicyCheck.ts"
  ),
  delivery(
    "verification: the nonce proves nothing",
    "if (!spent) return undefined",
    "if (spent || !spent) return undefined",
    "payer/proveSpent.ts"
  ),
  delivery(
    "delivery: content without proof is thrown away",
    "(isNew && (yield* keepContent(open, keptOf(open, answer))))",
    "false",
    "call/sendPayment.ts"
  ),
  crooks(
    "delivery: an error beside a failed settlement is what was bought",
    'isContent: !(result["isError"] === true && settlement?.success === false)',
    "isContent: true",
    "seller/mcpSeller.ts"
  ),
  delivery(
    "delivery: a client's error beside a failed settlement is what was bought",
    "&& !(status >= 400 && settlement?.success === false)",
    "",
    "seller/httpSeller.ts"
  ),
  delivery(
    "delivery: a stream is read to its end",
    "...(sent.id === undefined ? {} : { reader: toRpcAnswer(sent.id) })",
    "",
    "seller/SellerSession.ts"
  ),
  bodies(
    "delivery: JSON is read to the end of its connection",
    "reader: isPaid ? undefined : toJsonEnd,",
    "",
    "httpSeller.ts"
  ),
  inFile("mcp-tools/Tool.ts", stringified)("issues: a path is an entry of its own", '.replaceAll(/\\n\\s+/g, " ")', ""),
  eras(
    "eras: a server that refuses initialize is given up",
    'if ("refusal" in begun || chosen === statelessRevision)',
    "if (chosen === statelessRevision)",
    "SellerSession.ts"
  ),
  eras(
    "eras: requests after initialization name no revision",
    '...(state.version === undefined ? {} : { "mcp-protocol-version": state.version }),',
    "",
    "SellerSession.ts"
  ),
  eras(
    "eras: a result that asks for input is content",
    'return resultTypes.has(answered.result["resultType"])',
    'return resultTypes.has(answered.result["resultType"]) || true',
    "SellerSession.ts"
  ),
  stateless(
    "eras: any revision is spoken",
    "supportedVersions.includes(statelessRevision)",
    "supportedVersions.length > 0",
    "StatelessRevision.ts"
  ),
  stateless("eras: a value adds a header", "/^[\\x20-\\x7e]*$/.test(text) &&", "", "StatelessRevision.ts"),
  stateless(
    "eras: any number of arguments is mirrored",
    "|| found.length >= headerParametersMax",
    "",
    "StatelessRevision.ts"
  ),
  stateless(
    "eras: two arguments share a header",
    "found.some((other) => other.header === header) ||",
    "",
    "StatelessRevision.ts"
  ),
  sellerWire(
    "mcp: copies of the terms may differ",
    "canonicalJson(other) !== canonicalJson(first)",
    "false",
    "SellerWire.ts"
  ),
  sellerWire("mcp: a copy that cannot be read agrees", "text.isUnreadable ||", "", "SellerWire.ts"),
  reference(
    "reference: another spelling is taken for the listing's",
    "if (own !== ref)",
    'if (own === "")',
    "mcp-tools-pay/call/purchase.ts"
  ),
  reference(
    "reference: an approval whose seller was not paid stays used",
    "const asked = yield* Effect.onError(shop.ask, () => giveBack)",
    "const asked = yield* shop.ask",
    "mcp-tools-pay/call/makePurchase.ts"
  ),
  canonical(
    "rules: an origin is compared as it is written",
    'return pathname === "/" && search === "" && !/[?#\\s]/.test(text) ? origin : undefined',
    "return text",
    "mcp-tools-pay/policy/canonicalRules.ts"
  ),
  canonical(
    "rules: a muxed recipient is another than its account",
    "if (StrKey.isValidMed25519PublicKey(address))",
    'if (address === "")',
    "mcp-tools-pay/policy/canonicalRules.ts"
  ),
  canonical(
    "origins: a trailing dot is another host",
    'hostname.replace(/\\.$/, "")',
    "hostname",
    "mcp-tools/canonicalOrigin.ts"
  ),
  canonical(
    "origins: a mapped address is another host",
    'return bytes?.length === 4 ? bytes.join(".") : bare',
    "return bare",
    "mcp-tools/canonicalOrigin.ts"
  ),
  restart(
    "payments: an open payment is forgotten with its process",
    "const isKept = yield* Effect.mapError(store.keep(identifier, { payment: sealed }), () => storeUnavailable)",
    "const isKept = sealed !== identifier",
    "call/signPurchase.ts"
  ),
  restart(
    "payments: what is kept is not sealed",
    'return prefix + Base64.encode(Uint8Array.from([...nonce, ...tag])) + "." + Base64.encode(sealed)',
    'return prefix + Base64.encode(Uint8Array.from([...nonce, ...tag])) + "." + Base64.encode(sealed) + text',
    "payer/PaymentSeal.ts"
  ),
  restart(
    "payments: a second one does not name the first",
    "...(replaces.length === 0 ? {} : { replaces })",
    "",
    "call/delivery.ts"
  ),
  inFile("mcp-tools-pay/call/OpenPayments.ts", vitest("test/plugins/mcp-tools-pay/OpenPayments.test.ts"))(
    "payments: a concurrent identical call is paid separately",
    "if (other !== undefined) return other",
    ""
  ),
  {
    name: "payments: identical concurrent calls are two purchases",
    changes: [
      {
        file: "plugins/mcp-tools-pay/call/OpenPayments.ts",
        from: "if (other !== undefined) return other",
        to: ""
      },
      {
        file: "plugins/mcp-tools-pay/budget/tableStore.ts",
        from: "if (table.filter((one) => one.invocation === invocation).length !== made)",
        to: "if (made < 0)"
      }
    ],
    catcher: http
  },
  inFile("mcp-tools-pay/budget/tableStore.ts", vitest("test/plugins/mcp-tools-pay/budget.daily.test.ts"))(
    "budget: two reservations for one call, in memory",
    "if (table.filter((one) => one.invocation === invocation).length !== made)",
    "if (made < 0)"
  ),
  inFile("mcp-tools-pay/budget/tableStore.ts", vitest("test/plugins/mcp-tools-pay/budget.daily.test.ts"))(
    "budget: a clock that is days ahead has spending forgotten",
    " && Date.parse(written.day) - Date.parse(one.day) >= keptMillis",
    ""
  ),
  inFile("mcp-tools-pay/budget/postgresStore.ts", vitest("test/plugins/mcp-tools-pay/budget.daily.test.ts"))(
    "budget: two reservations for one call, in PostgreSQL",
    'if ((yield* madeFor(sql, one.invocation)) !== made) return "changed"',
    ""
  ),
  inFile("mcp-tools-pay/budget/postgresStore.ts", vitest("test/plugins/mcp-tools-pay/budget.daily.test.ts"))(
    "budget: a minute by each replica's own clock",
    "then created_at > ${ago(sql, minuteMillis)}",
    "then created_at > ${new Date(one.createdAtMillis - minuteMillis)}"
  ),
  inFile("mcp-tools-pay/budget/Reservation.ts", http)(
    "budget: the day has no ceiling",
    "[perDay - day, perSession - session,",
    "[perSession - session,"
  ),
  policy(
    "policy: nothing is decided",
    "const giveBack = yield* (yield* Policy).verify(decidedOn(invocation), caller, made)",
    "yield* Policy\n  const giveBack = Effect.void",
    "call/makePurchase.ts"
  ),
  policy("policy: a refusal is not one", 'if (decision.outcome === "deny")', 'if (decision.rule === "")'),
  policy("policy: no person is asked", 'if (decision.outcome === "approve")', 'if (decision.rule === "")'),
  policy(
    "policy: an approval is good for every call",
    "const terms = [key, ...signed,",
    "const terms = [...signed,",
    "policy/askPerson.ts"
  ),
  question(
    "policy: a listing that is declared again asks its person again",
    "const terms = [key, ...signed,",
    "const terms = [key, versionHash, ...signed,",
    "policy/askPerson.ts",
    {
      file: "policy/askPerson.ts",
      from: "{ about, bought, key, option }",
      to: "{ about, bought, key, option, versionHash }"
    }
  ),
  question(
    "policy: a call that finds its approval used asks again",
    "if (kept !== undefined) return kept",
    'if (kept !== undefined && kept.state !== "used") return kept',
    "policy/askPerson.ts",
    { file: "policy/approvalRows.ts", from: "and excluded.state = 'approved'", to: "" },
    {
      file: "policy/approvalFiles.ts",
      from: '(own.state !== "used" || approval.state !== "approved")',
      to: 'own.state !== "used"'
    }
  ),
  requests(
    "policy: a late request takes the place of a used approval, in PostgreSQL",
    "and excluded.state = 'approved'",
    "",
    "policy/approvalRows.ts"
  ),
  requests(
    "policy: a late request takes the place of a used approval, in a folder",
    '(own.state !== "used" || approval.state !== "approved")',
    'own.state !== "used"',
    "policy/approvalFiles.ts"
  ),
  policy(
    "policy: an approval is used twice",
    "else if (yield* take(id)) return",
    "else if (yield* Effect.succeed(true)) return",
    "policy/askPerson.ts"
  ),
  policy(
    "policy: a person's no is a yes",
    'answer ? "approved" : "denied"',
    'answer ? "approved" : "approved"',
    "policy/askPerson.ts"
  ),
  policy(
    "policy: each call of an invocation asks its person",
    "(yield* claim(pending.id, questionMillis, policy.approvalMillis))",
    "true",
    "policy/askPerson.ts"
  ),
  policy(
    "policy: a dismissed question is asked again",
    "yield* leave(pending.id, policy.approvalMillis)",
    "",
    "policy/askPerson.ts"
  ),
  policy("policy: a person's answer is good for ever", "`approve-${pending.mark}`", '"approve"', "policy/askPerson.ts"),
  {
    name: "policy: what an agent wrote forges a line of the question",
    changes: [{ file: "plugins/mcp-tools/inert.ts", from: '.replace(unseen, " ")', to: "" }],
    catcher: vitest("test/plugins/mcp-tools-pay/policy.daily.test.ts")
  },
  policy("policy: a rule's amount is any", "amount > rule.above", "amount > 0n", "policy/decide.ts"),
  policy(
    "policy: a subdomain is any end",
    "host.endsWith(one.slice(1)",
    "host.endsWith(one.slice(2)",
    "policy/decide.ts"
  ),
  inFile("mcp-tools-pay/budget/Reservation.ts", vitest("test/plugins/mcp-tools-pay/budget.daily.test.ts"))(
    "budget: an origin has no ceiling",
    "[asked.origin === undefined ? 0n : perOrigin, origin],",
    ""
  ),
  inFile("mcp-tools-pay/budget/Reservation.ts", vitest("test/plugins/mcp-tools-pay/budget.daily.test.ts"))(
    "budget: a grade has no ceiling",
    "[ofGrade, grade]",
    ""
  ),
  inFile("mcp-tools-pay/policy/approvalRoutes.ts", vitest("test/plugins/mcp-tools-pay/policy.daily.test.ts"))(
    "policy: any caller decides over HTTP",
    "yield* admitOperator(request)\n      const { id",
    "const { id"
  ),
  policy("policy: no limit per minute", "lately >= paymentsPerMinute", "lately > 10_000", "budget/Reservation.ts"),
  inFile("mcp-tools-pay/seller/SellerSession.ts", hostile)(
    "mcp: a payment follows a redirect",
    "{ redirectsMax: 0, ...(paid ===",
    "{ ...(paid ==="
  ),
  inFile("mcp-tools-pay/seller/SellerSession.ts", hostile)(
    "mcp: a session may have any name",
    "!/^[\\x21-\\x7e]{1,256}$/.test(state.session)",
    "false"
  ),
  sellerWire("mcp: any number of events is read", ".slice(-eventsMax)", "", "SellerWire.ts"),
  sellerWire("mcp: a byte order mark ends a stream", '.replace(/^\\ufeff/, "")', "", "SellerWire.ts"),
  sellerWire("mcp: an id written as text is another's", "|| given === String(id)", "", "SellerWire.ts"),
  readToResult("delivery: JSON texts of a sequence are one JSON", "json\\s*(;|$)/i", "json\\b/i", "readToResult.ts"),
  readToResult(
    "delivery: a text is read to the end of its connection",
    "return byte === quote && this.#depth === 0",
    "",
    "readToResult.ts"
  ),
  delivery(
    "delivery: one event that is no JSON hides the answer",
    "Effect.option(parse(part))",
    'Effect.asSome(Effect.mapError(parse(part), () => malformed("unreadable")))',
    "seller/SellerSession.ts"
  ),
  delivery(
    "delivery: a result under another status is thrown away",
    'if (status !== 200 && !(method === "tools/call" && isResult))',
    "if (status !== 200)",
    "seller/SellerSession.ts"
  ),
  delivery("delivery: a part is thrown away", "keepsPart: isPaid,", "", "seller/httpSeller.ts"),
  delivery(
    "delivery: a part is all there is",
    "answer instanceof ToolError || answer.isPart === true",
    "answer instanceof ToolError",
    "call/PaymentPolicyCheck.ts"
  ),
  delivery(
    "verification: a lost answer says nothing of the ledger",
    "const proof = yield* once(undefined, open)",
    "const proof = undefined",
    "call/PaymentPolicyCheck.ts"
  ),
  inFile("mcp-tools/Upstream.ts", hostile)(
    "upstream: one seller may have every connection",
    "return isStranger ? ofOrigin(url.host, Semaphore.withPermit(strangers, connected)) : connected",
    "return connected"
  ),
  inFile("mcp-tools-pay/call/PaymentPolicyCheck.ts", hostile)(
    "verification: an earlier settlement is rejected",
    "if (reason === settledBefore)",
    'if (reason === "")'
  ),
  {
    name: "outbound: a connection that becomes another protocol is waited for",
    changes: [
      {
        file: "runtime/platform/nodeOutbound.ts",
        from: 'outgoing.once("upgrade", (_, socket) => {',
        to: 'outgoing.once("socketless", (_, socket) => {'
      }
    ],
    catcher: hostile
  },
  {
    name: "policy: an approval is honoured by each replica",
    changes: [
      {
        file: "plugins/mcp-tools-pay/policy/approvalRows.ts",
        from: "set state = 'used', asked_at = now() where",
        to: "set asked_at = now() where"
      }
    ],
    catcher: vitest("test/plugins/mcp-tools-pay/approvals.test.ts")
  },
  {
    name: "budget: replicas reserve concurrently",
    changes: [
      {
        file: "plugins/mcp-tools-pay/budget/postgresStore.ts",
        from: "yield* sql`select pg_advisory_xact_lock(hashtextextended(${lock}, 0))`",
        to: "yield* sql`select ${lock}::text`"
      }
    ],
    catcher: vitest("test/plugins/mcp-tools-pay/replicas.slow.test.ts"),
    environment: { TOLLKEEPER_TEST_SLOW: "only", TOLLKEEPER_TEST_DATABASES: "postgres" }
  },
  sessions(
    "sessions: a caller with its share is locked out",
    "of(principal).find(({ id }) => isIdle(id))",
    "undefined"
  ),
  sessions("sessions: a stranger's is ended", "of(principal).find(", "[...held.values()].find("),
  sessions("sessions: a call under way does not count", "!staysOpen && !calls.isBusy(id)", "!staysOpen"),
  sessions(
    "sessions: an unused one lives long",
    "isUnused ? unusedMillis : http",
    "isUnused ? http.sessionIdleMillis : http"
  ),
  inFile("mcp-tools/server/AdmissionControl.ts", transports)(
    "any page of this machine may ask",
    'origin.toLowerCase() === `http://${headers["host"]!.toLowerCase()}`',
    'origin.startsWith("http://127.0.0.1")'
  ),
  inFile("mcp-tools/serveTools.ts", composition)(
    "a signer without a plugin that pays",
    'signer.mode === "none" || tools.all()',
    "true || tools.all()"
  ),
  inFile("mcp-tools/server/StdioTransport.ts", composition)(
    "a notification that is refused is answered over stdio",
    "refuse(isNotification(value) ? undefined : read)",
    "refuse(read)"
  ),
  inFile("mcp-tools/server/streamableRoutes.ts", transports)(
    "a notification that is refused is answered over HTTP",
    "isNotification(value) ? accepted : badRequest(400, read)",
    "badRequest(400, read)"
  ),
  inFile("mcp-tools/server/StdioTransport.ts", composition)(
    "stdin is read before every plugin has started",
    'choose({ at: "nowhere", begins, closing: Effect.void })',
    'choose({ at: "nowhere", begins: Effect.void, closing: Effect.void })\n  yield* Effect.orDie(begins)'
  ),
  inFile("mcp-tools/server/AdmissionControl.ts", transports)(
    "admission: any name is answered where another address than loopback is bound",
    "return !isLoopback(boundHost) && (name",
    "return !isLoopback(boundHost) || (name"
  ),
  inFile("mcp-tools/server/AdmissionControl.ts", transports)(
    "admission: origins are not checked on a non-loopback address",
    "origin === undefined || http",
    "!isLoopback(host) || origin === undefined || http"
  ),
  {
    name: "profile: the hosted tool server listens everywhere without keys",
    changes: [
      { file: "runtime/profiles/tools-hosted.yaml", from: "  port: 4522", to: "  host: 0.0.0.0\n  port: 4522" }
    ],
    catcher: vitest("test/runtime/contract.test.ts")
  },
  inFile("mcp-tools/Tool.ts", stringified)(
    "tools: the text of an object is taken for any JSON",
    "if (stringified !== undefined)",
    "if (false)"
  ),
  inFile("mcp-tools/Tool.ts", stringified)(
    "tools: a member that may be anything names no type",
    "{ type: anyType }",
    "{}"
  ),
  inFile("mcp-tools/stringified.ts", stringified)(
    "tools: a member that may be null is taken as a string",
    "[allOf, anyOf, oneOf]",
    "[allOf, oneOf]"
  ),
  inFile("mcp-tools/stringified.ts", stringified)(
    "tools: a model by reference is taken as a string",
    "further.push(referred(root, $ref))",
    "further.push({ enum: [] })"
  ),
  inFile("mcp-tools/stringified.ts", stringified)(
    "tools: an object that was stringified twice is taken",
    "const encodingsMax = 3",
    "const encodingsMax = 1"
  ),
  inFile("mcp-tools-pay/call/fetchResource.ts", http)(
    "http: a body of null is the same call as no body",
    "json === undefined ? {} : { json }",
    "json === undefined ? { json: null } : { json }"
  ),
  inFile("mcp-tools/server/streamableRoutes.ts", transports)(
    "batches: count as one message",
    "yield* count(caller, read.messages.length - 1)",
    ""
  ),
  inFile("mcp-tools/server/messages.ts", transports)(
    "batches: are read in every revision",
    "if (revision !== batchRevision)",
    "if (revision === undefined)"
  ),
  inFile("mcp-tools/server/messages.ts", transports)(
    "batches: an empty one is none",
    "value.length === 0",
    "value.length < 0"
  ),
  inFile("mcp-tools/server/StreamableTransport.ts", transports)(
    "cancelled: the stream of a batch stays open",
    "if (id !== undefined) this.#end(id) } } #end",
    "} } #end"
  ),
  inFile("mcp-tools/server/messages.ts", vitest("test/plugins/mcp-tools/messages.test.ts"))(
    "stdio: a line that is too long has no id",
    "idFirst.exec(beginning)?.[1] ?? idLast.exec(end)?.[1]",
    "idFirst.exec(beginning)?.[1]"
  ),
  holds(
    "holds: one that is checked too late is held for ever",
    'if (fate === "undecidable") yield* decideLate(one, authorization)',
    'if (fate === "undecidable" && one.state === "signed") yield* store.move(one.id, { state: "unknown" })',
    "budget/reconcileHolds.ts"
  ),
  holds(
    "holds: a payment that was never sent is held for ever",
    'if (payment === undefined && one.state === "signed")',
    "if (one.id === '')",
    "budget/reconcileHolds.ts"
  ),
  holds(
    "holds: one that was sent is taken for one that was not",
    'if (payment === undefined && one.state === "signed")',
    "if (payment === undefined)",
    "budget/reconcileHolds.ts"
  ),
  agents(
    "agents: what is acknowledged is paid for again without a window",
    "yield* Effect.mapError((yield* BudgetStore).settleAcknowledged(replay.windowMillis)",
    "yield* Effect.mapError((yield* BudgetStore).settleAcknowledged(0)",
    "call/Payments.ts"
  ),
  channels(
    "channels: a next voucher is signed while an earlier one is open",
    "yield* resolveOpen(order)",
    "",
    "channel/payByChannel.ts"
  ),
  agents(
    "agents: a payment ends before its answer is acknowledged",
    'store.move(open.identifier, { state: "spent", ...transaction',
    'store.move(open.identifier, { state: "settled", ...transaction',
    "call/sendPayment.ts"
  ),
  agents(
    "agents: an open payment is let go of while it may be spent",
    'latestLedger < expirationLedger ? "alive" : latestLedger === expirationLedger',
    'latestLedger < expirationLedger - 3 ? "alive" : latestLedger <= expirationLedger',
    "payer/proveSpent.ts"
  ),
  agents(
    "agents: the payment is sent before it is kept",
    "store.keep(identifier, { payment: sealed })",
    "store.keep(identifier, {})",
    "call/signPurchase.ts"
  ),
  agents(
    "agents: a hold that is checked too late never ends",
    'if (fate === "undecidable") yield* decideLate(one, authorization)',
    'if (fate === "undecidable" && one.state === "signed") yield* store.move(one.id, { state: "unknown" })',
    "budget/reconcileHolds.ts"
  ),
  agents(
    "agents: a receipt names no payment that it replaces",
    "replaces.length === 0 ? {} : { replaces }",
    "{}",
    "call/delivery.ts"
  ),
  channels(
    "channels: any contract gets a deposit",
    "if (batchContract !== batch.contract)",
    "if (batchContract === undefined)",
    "channel/channelTerms.ts"
  ),
  channels(
    "channels: a seller's total is taken by its word",
    'correction === undefined || !channel.isOurs(correction))\n      return { _tag: "Refused"',
    'correction === undefined)\n      return { _tag: "Refused"',
    "channel/payByChannel.ts"
  ),
  channels(
    "channels: a deposit is as large as what is missing",
    "if (max - known.balance > amount) return yield* emptied",
    "",
    "channel/payByChannel.ts"
  ),
  channels(
    "channels: a deposit is made by what was known",
    "if (before.charged + amount > before.balance) doubt(channel, before.charged)",
    "",
    "channel/payByChannel.ts"
  ),
  channels(
    "channels: a deposit is not counted",
    "reserve(purchase.invocation, caller, purchase.made, ledger, amount)",
    "reserve(purchase.invocation, caller, purchase.made, ledger)",
    "channel/payByChannel.ts"
  ),
  channels(
    "channels: the policy decides on the price of one call",
    "deposit === undefined ? invocation :",
    "true ? invocation :",
    "call/makePurchase.ts"
  ),
  channels(
    "channels: nothing comes back at the end",
    "Effect.forEach(channels.all(), refund,",
    "Effect.forEach(channels.all().slice(0, 0), refund,",
    "channel/refundChannels.ts"
  ),
  channels(
    "channels: the voucher just sent proves an earlier total",
    "signedMax <= counted || signedMax > sent",
    "true",
    "channel/channelTerms.ts"
  ),
  channels(
    "channels: what was signed for is forgotten with the process",
    'yield* recordsInFile(folder, "channels.json", totalsCodec)',
    "recordsInMemory<SignedTotals>()",
    "budget/tableStore.ts"
  ),
  channels(
    "channels: a voucher is not kept before it is sent",
    "{ payment: sealed }), () => storeUnavailable)\n  if (!(yield* moved",
    "{}), () => storeUnavailable)\n  if (!(yield* moved",
    "channel/payByChannel.ts"
  ),
  channels(
    "channels: a refund is believed by the seller's word",
    '(yield* isRefunded(channel, charged)) ? "refunded" : "refused"',
    '"refunded"',
    "channel/refundChannels.ts"
  ),
  kept(
    "delivery: an error without a receipt is what was bought, though the payment was sent before",
    "earlier === undefined ? answered : answerAgain(answered)",
    "answered",
    "call/sendPayment.ts"
  ),
  kept(
    "delivery: a failure with a receipt ends a payment",
    "          if (!isContent)\n            return {",
    "          if (false)\n            return {",
    "call/PaymentPolicyCheck.ts"
  ),
  invocation(
    "payments: the asset of the listing makes another invocation",
    "key: keyOf(asked ?? null)",
    "key: keyOf(asked ?? [...assets][0] ?? null)",
    "call/Invocation.ts"
  ),
  kept(
    "payments: a stale listing hides an open payment",
    "if (outcome !== undefined) return outcome\n  }\n  return undefined",
    "if (outcome === undefined) return undefined\n  }\n  return undefined",
    "call/fetchResource.ts"
  ),
  kept(
    "delivery: a paid result deeper than the bounds is lost",
    "payment: (part: Uint8Array) => parseJson(part, answerBounds)",
    "payment: upstream.parseContent",
    "seller/SellerSession.ts"
  ),
  policy(
    "policy: an agent's own program approves its payments over HTTP",
    'policy.askClient === "http-clients" || (policy.askClient && principal === "stdio")',
    "policy.askClient",
    "policy/askPerson.ts"
  ),
  canonical(
    "policy: a rule for an agent decides by the case of its label",
    "const agent = text.toLowerCase()",
    "const agent = text",
    "mcp-tools-pay/policy/canonicalRules.ts"
  ),
  words(
    "errors: a seller's sentence names an extension",
    'isWord(key) ? `extensions.${key}` : "extensions"',
    "`extensions.${key}`",
    "seller/compareTerms.ts"
  ),
  words(
    "errors: a listing's sentence names a method",
    "methods.filter((known) => listed.some((one) => one.method === known))",
    "listed.map((one) => one.method)",
    "call/httpCall.ts"
  ),
  readToResult(
    "delivery: a stream of documents is cut after the first",
    'return isEnded ? "pause" : false',
    "return isEnded",
    "readToResult.ts"
  ),
  bodies(
    "delivery: a pause ends a paid body",
    "reader: isPaid ? undefined : toJsonEnd,",
    "reader: toJsonEnd,",
    "httpSeller.ts"
  ),
  bodies(
    "delivery: whole JSON on a connection left open is a part",
    "const answer = withoutIdleCut(sent)",
    "const answer = sent",
    "httpSeller.ts"
  ),
  bodies(
    "delivery: any cut body is whole",
    '(cut !== "too_large" && isWholeJson(answer, answer.body))',
    "true",
    "httpSeller.ts"
  ),
  bodies(
    "delivery: two documents that were cut off are one whole",
    "&& Result.isSuccess(readJson(withoutMark(body), answerBounds))",
    "",
    "readToResult.ts"
  ),
  bodies(
    "delivery: a number that was cut off is whole",
    'toJsonEnd(head)?.(body) === "pause" &&',
    "",
    "readToResult.ts"
  ),
  recovering(
    "recovery: a catalog that hangs is waited for to its timeout",
    'const catalogWait = "2 seconds"',
    'const catalogWait = "2 minutes"'
  ),
  recovering(
    "recovery: a hanging catalog keeps its connection",
    "const outcome = yield* recovered(Fiber.interrupt(preparing))",
    "const outcome = yield* recovered(Effect.void)"
  ),
  inFile("mcp-tools-pay/call/makePurchase.ts", vitest("test/plugins/mcp-tools-pay/kept.daily.test.ts"))(
    "recovery: requests to a hanging catalog take every connection",
    'if (state._tag !== "None") yield* found',
    ""
  ),
  recovering(
    "recovery: a call that was not paid for is given up",
    "const late = yield* Fiber.await(preparing)",
    "const late = yield* Effect.andThen(Fiber.interrupt(preparing), Fiber.await(preparing))"
  ),
  recovering("recovery: a dead payment ends its call", "Exit.hasInterrupts(late) ? prepared : late", "late"),
  recovering(
    "recovery: a payment made meanwhile is not found",
    "return yield* orEarlier(Exit.hasInterrupts",
    "return yield* Effect.suspend(() => Exit.hasInterrupts"
  ),
  {
    name: "outbound: what came before a reset is lost",
    changes: [
      {
        file: "runtime/platform/nodeOutbound.ts",
        from: 'if (broken !== undefined) return broken("unreachable")',
        to: "if (made < 0)"
      }
    ],
    catcher: vitest("test/plugins/mcp-tools-pay/bodies.daily.test.ts")
  },
  {
    name: "upstream: a paid body's time begins with its connection",
    changes: [
      {
        file: "plugins/mcp-tools/Upstream.ts",
        from: "partShare * timeoutMillis - (now - begun)",
        to: "partShare * timeoutMillis"
      }
    ],
    catcher: vitest("test/plugins/mcp-tools/upstream.test.ts")
  },
  {
    name: "upstream: a paid body's time begins with its address",
    changes: [
      {
        file: "kernel/http/safeFetch.ts",
        from: "partMillis: request.partMillis === undefined ? undefined : left",
        to: "partMillis: request.partMillis"
      }
    ],
    catcher: vitest("test/plugins/mcp-tools/upstream.test.ts")
  }
]
