// Removes each guard of the catalog, one at a time: which declaration may displace which, the limit of a day's claims,
// probes of the origin, when a listing is dead, what earns rank, authorization to declare, and what is part of the
// version hash. Those of a search are in `search.ts`.
import type { Mutation } from "./Mutation.ts"

const vitest = (...args: ReadonlyArray<string>) => [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  ...args
]

const folder = "test/plugins/catalog"
const environment = { TOLLKEEPER_TEST_DATABASES: "pglite" }

const inFile =
  (file: string, tests: string) =>
  (name: string, from: string, to: string): Mutation => ({
    name,
    changes: [{ file: `plugins/catalog/${file}`, from, to }],
    catcher: vitest(`${folder}/${tests}.test.ts`),
    environment
  })

const graded = inFile("declaration/Grade.ts", "grades")
const redeclared = inFile("store/Redeclarations.ts", "grades")
const first = inFile("store/FirstListings.ts", "grades")
const inTurns = inFile("FairScheduler.ts", "crowding")
const counted = inFile("store/Quotas.ts", "grades")
const versioned = inFile("store/Versions.ts", "grades")
const merged = inFile("store/mergeDeclaration.ts", "grades")
const fenced = inFile("ownership/Verdicts.ts", "time.daily")
const verified = inFile("ownership/Verdicts.ts", "grades")
const executed = inFile("ownership/Execution.ts", "grades")
const sold = inFile("store/storeSightings.ts", "grades")
const bound = inFile("ownership/Recipients.ts", "grades")
const challenged = inFile("ownership/Challenges.ts", "grades")
const hinted = inFile("ownership/Hints.ts", "grades")
const reported = inFile("contract.ts", "units")
const read = inFile("ownership/OriginWire.ts", "originWire")
const asked = inFile("ownership/Origins.ts", "origins")
const probed = inFile("store/Resources.ts", "probes")
const settledBy = inFile("ownership/Verdicts.ts", "probes")
const leasing = inFile("ownership/reconcileProbes.ts", "probes")
const raised = inFile("store/storeSightings.ts", "probes")
const documented = inFile("ownership/OriginDocuments.ts", "origins")

const evident = (file: string) => inFile(file, "evidence.daily")
const contested = (file: string) => inFile(file, "contest")
const flooded = (file: string) => inFile(file, "flood.daily")
const ranked = (file: string) => inFile(file, "search/ranking")

const ofEvidence: ReadonlyArray<Mutation> = [
  evident("store/storeSightings.ts")(
    "dust is evidence for a claim",
    "where ${countsForRank(sql, dustBelow)} and exists",
    "where exists"
  ),
  evident("store/Contenders.ts")(
    "a claim with as many payers displaces the first",
    "n.payers > coalesce(",
    "n.payers >= coalesce("
  ),
  evident("store/Redeclarations.ts")(
    "what settles by other words is no evidence",
    "yield* contenders.keep(row.id, declaration, carrier)",
    'yield* Effect.succeed("")'
  ),
  contested("store/Redeclarations.ts")(
    "a stranger's recipient outlasts what settles under a key",
    'if (row.grade === "claimed") return isOfAnother || grade === "claimed"',
    'if (row.grade === "claimed") return grade === "claimed"'
  ),
  contested("store/Redeclarations.ts")(
    "a signature at no cost outlasts what settles for a declaring seller",
    'return isOfAnother && grade === "declared" && !row.has_evidence',
    "return false"
  ),
  contested("store/Redeclarations.ts")(
    "payments alone change what an account signed",
    'return isOfAnother && grade === "declared" && !row.has_evidence',
    "return isOfAnother && !row.has_evidence"
  ),
  contested("store/Redeclarations.ts")(
    "free words take the place of what another recipient claimed",
    "case when ${isFree(carrier)} then",
    "case when false then"
  ),
  contested("store/Contenders.ts")(
    "what settles stays unverified",
    "set verification = 'payment_observed'",
    "set verification = verification"
  ),
  contested("store/Contenders.ts")(
    "what settles stays stale",
    'if (row.state === "stale") yield* revive',
    "if (false as boolean) yield* revive"
  ),
  contested("store/Contenders.ts")(
    "what settles for another recipient was not seen",
    "last_seen_at = greatest(a.last_seen_at, p.at)",
    "last_seen_at = a.last_seen_at"
  ),
  contested("store/Listings.ts")(
    "a signature declares again what the key's holder changed",
    'recorded.decision === "updated" && carrier.grade === "declared"',
    "false"
  ),
  contested("administration/Records.ts")(
    "a claim for another recipient makes a payment ambiguous",
    ".filter(({ pay_tos }) => pay_tos.includes(payTo))",
    ""
  ),
  contested("store/Recorded.ts")("dust lists without bound", "|| isDust === true", ""),
  evident("declaration/resourceUrl.ts")(
    "a route without a part that varies hides its page",
    '|| !template.includes(":")',
    ""
  ),
  evident("ownership/reconcileProbes.ts")(
    "the page of a claim's method is not asked",
    "claimedMethods: row.claimed,",
    ""
  ),
  asked("a dead page hides other operations", "const isOther = isPartial &&", "const isOther = !isPartial &&"),
  asked(
    "a claim's page is a listing's life",
    "lifeOfAll(live, declarations",
    "lifeOfAll([...live, ...claimed], declarations"
  ),
  inFile("discovery/Resolve.ts", "squatting.daily")(
    "another spelling of a seller's path answers",
    "if (yield* isRespelled(exact.id, read))",
    "if (false as boolean)"
  ),
  inFile("discovery/Resolve.ts", "squatting.daily")(
    "a claim answers for a path of the origin's template",
    'type === "mcp" ? undefined : yield* ownTemplate(exact.id, read)',
    "undefined"
  ),
  inFile("store/findCircles.ts", "evidenceOrder.daily")(
    "payments to thousands of sellers hide a ring",
    "where exists (select 1 from catalog_payers o where o.payer = t.pay_to)",
    ""
  ),
  inFile("ownership/canary.ts", "origins")(
    "an answer vouches for an outage",
    "const seenMillis = 60_000",
    "const seenMillis = 300_000"
  ),
  flooded("DeclarationValidator.ts")(
    "dust is no dust",
    "isWorthless(observation, config.dustBelow)",
    "isWorthless(observation, 0)"
  ),
  ranked("search/rank/spreadSellers.ts")(
    "claims take a seller's places",
    "const seen = isProven ? places.proven : places.all",
    "const seen = places.all"
  ),
  ranked("search/rank/signals.ts")(
    "claims take a seller's score",
    "(isProven ? proven : seen).get(origin)",
    "seen.get(origin)"
  ),
  evident("store/Redeclarations.ts")(
    "words of a higher grade do not void dead probes",
    "if (isDead(row) && isOther(row, words, changed))",
    "if (false)"
  ),
  evident("store/Listings.ts")(
    "a replaced signature declares again",
    "const isReplaced = row !== undefined &&",
    "const isReplaced = row === undefined &&"
  ),
  evident("ownership/signedDeclaration.ts")(
    "a signature of any account declares",
    "isSignedText(crypto, payTo, text, bytes)",
    "bytes.length > 0"
  ),
  inFile("discovery/DiscoveryRoutes.ts", "discovery.daily")(
    "what is no URL is merely not found",
    'spellResourceUrl(type === "mcp" ? "mcp" : "http", url) === undefined',
    'url === ""'
  ),
  // Its path is named as well, which alone would end it.
  {
    name: "a hidden listing does not end a resolve",
    changes: [
      {
        file: "plugins/catalog/discovery/Resolve.ts",
        from: "if (exact !== undefined) return",
        to: "if (exact?.isVisible === true) return"
      },
      { file: "plugins/catalog/discovery/Resolve.ts", from: "|| (yield* isNamed(origin, resource))", to: "" }
    ],
    catcher: vitest(`${folder}/evidence.daily.test.ts`),
    environment
  },
  evident("discovery/Resolve.ts")("a named path resolves to a template", "|| (yield* isNamed(origin, resource))", ""),
  evident("discovery/Resolve.ts")(
    "any template answers",
    "and (r.ownership = 'proven' or exists",
    "and (true or exists"
  ),
  inFile("discovery/Resolve.ts", "squatting.daily")(
    "a template answers that an account signed at no cost",
    "or (r.standing_at is not null and not exists",
    "or (r.grade = 'declared' and not exists"
  ),
  inFile("discovery/Resolve.ts", "squatting.daily")(
    "a later claim silences a template with evidence",
    "and (o.standing_at is not null or o.first_seen_at",
    "and (true or o.first_seen_at"
  ),
  inFile("discovery/Resolve.ts", "squatting.daily")(
    "a settlement lays a template beside an earlier claim",
    "o.first_seen_at < greatest(r.standing_at, r.first_seen_at)",
    "false"
  ),
  inFile("ownership/OriginDocuments.ts", "origins")(
    "a host counts as gone while nothing outside answers",
    "isAuthoritative === true ? canary.isOutsideSeen(url) : Effect.succeed(false)",
    "Effect.succeed(isAuthoritative === true)"
  ),
  inFile("ownership/OriginDocuments.ts", "origins")(
    "a resolver that errs says that a host is gone",
    "isAuthoritative === true ? canary.isOutsideSeen(url) : Effect.succeed(false)",
    "canary.isOutsideSeen(url)"
  ),
  asked("a trial is dead though the documents name its price", "isServed || !asked.includes", "!asked.includes"),
  flooded("search/rank/signals.ts")("a claim ranks before evidence", "evidenceAt(next) >= least", "false"),
  ranked("search/rank/spreadSellers.ts")(
    "copies rank before the original",
    "const hits = originalsFirst(given, groups, sellerOf)",
    "const hits = given"
  ),
  flooded("store/Quotas.ts")(
    "one payer lists at no cost without end",
    'return share !== "taken" || (yield* takeHour(claimant)) ? share',
    'return share !== "taken" || true ? share'
  ),
  flooded("search/Searcher.ts")(
    "a later page shows what passes the filters no more",
    "isLater ? yield* passing(cut, read.filters) : cut",
    "cut"
  ),
  flooded("search/Searcher.ts")(
    "every caller sees the explanation of a rank",
    "keyed || callers.isLocal(request)",
    "true"
  ),
  flooded("search/rank/Ranker.ts")(
    "claims that fill the candidates hide evidence",
    "long.length === 0",
    "long.length >= 0"
  ),
  ranked("search/rank/fuse.ts")("claims take ranks from evidence", "evidenced.size === 0", "evidenced.size >= 0"),
  flooded("search/rank/ResourceSignals.ts")(
    "evidence far behind a flood is not weighed",
    "behind.filter(({ id }) => evidenced.has(id))",
    "behind.filter(() => false)"
  ),
  ranked("search/rank/signals.ts")("claims fill a page by the margin", "before >= claimsMax", "false"),
  ranked("search/rank/signals.ts")(
    "evidence behind a flood is in the flood's order",
    "(b.scoreAmongEvidence ?? 0) - (a.scoreAmongEvidence ?? 0)",
    "0"
  ),
  ranked("search/rank/spreadSellers.ts")(
    "one sentence is its oldest sellers'",
    "hasEvidence(a) && hasEvidence(b) ?",
    "(false as boolean) ?"
  ),
  ranked("search/rank/spreadSellers.ts")(
    "ranks behind a flood decide equal relevance",
    "isAtLeast(hit.scoreAmongEvidence, best.scoreAmongEvidence)",
    "true"
  ),
  flooded("search/report/conversion.ts")(
    "a free caller counts each of its searches",
    "number <= ${ofFreeSessionMax}",
    "true"
  ),
  flooded("search/report/conversion.ts")("a free caller counts one search again and again", "where copy = 1)", ")"),
  flooded("search/Searcher.ts")(
    "a caller without a key counts like one with it",
    "isKeyed: Option.exists(callers.authenticate(request), ({ keyed }) => keyed)",
    "isKeyed: true"
  ),
  flooded("search/Searcher.ts")(
    "all callers without a key are one where others have keys",
    "onNone: () => callers.sourceOf(request)",
    'onNone: () => ""'
  ),
  ranked("search/rank/spreadSellers.ts")("evidence is no originality", "return evidence ||", "return 0 * evidence ||")
]

const ofGrades: ReadonlyArray<Mutation> = [
  graded("a claim displaces a claim", 'newer !== "claimed" &&', ""),
  graded("a lower grade displaces a higher one", "grades.indexOf(newer) >= grades.indexOf(older)", "true"),
  graded(
    "a grade does not displace its own",
    "grades.indexOf(newer) >= grades.indexOf(older)",
    "grades.indexOf(newer) > grades.indexOf(older)"
  ),
  redeclared(
    "a changed declaration is accepted at any grade",
    "changed && !isFirst && !mayDisplace(grade, row.grade)",
    "false"
  ),
  redeclared("another recipient declares", "!found.pay_tos.includes(declaration.terms.payTo)", "false"),
  redeclared(
    "no change requests a probe",
    "yield* requestProbe(sql, row.id, config, { isFree: isFree(carrier), now: carrier.now })",
    ""
  ),
  redeclared(
    "the claimed words stay in the declared ones",
    'grade === row.grade || grade === "claimed" ? before : undefined',
    "before"
  ),
  redeclared(
    "free words stay when the first payment settles",
    '(row.verification === "unverified" && row.grade !== "origin" && listable)',
    "false"
  ),
  redeclared(
    "a squatter's declaration outlasts the origin's payee",
    'const isFirst = row.state === "quarantined" ||',
    "const isFirst ="
  ),
  redeclared(
    "the same words do not raise the grade",
    "!changed && mayDisplace(grade, row.grade) && grade !== row.grade",
    "false"
  ),
  redeclared(
    "the same words lower the grade",
    "!changed && mayDisplace(grade, row.grade) && grade !== row.grade",
    "!changed && grade !== row.grade"
  ),
  redeclared(
    "a payment brings back what its origin does not have",
    '(state_reason ?? "not_seen") === "not_seen"',
    "true"
  ),
  redeclared(
    "a buyer's extension stays in an earlier listing",
    "row.declaration.extensions.filter(isSellersExtension)",
    "row.declaration.extensions"
  ),
  redeclared(
    "an owner's versions of a day are without number",
    "!(yield* quotas.takeVersion(row.id, claimant.now))",
    "false"
  ),
  merged("the option before stays beside its new price", "optionName(one) !== name", "true"),
  merged("another operation is forgotten", "({ method }) => method !== operation.method", "() => false"),
  versioned("an option that is offered no more stays", "!options.some((option) => sameOption(option, old))", "false"),
  versioned("a version keeps the previous grade", "grade = ${words.grade}, extensions", "grade = grade, extensions"),
  versioned(
    "words of a grade are not kept apart",
    "yield* keepWords(sql, id, words, body, now) // A dynamic",
    "// A dynamic"
  )
]

const ofQuotas: ReadonlyArray<Mutation> = [
  counted("one payer uses up a day", "Math.max(1, Math.floor(max / payerPart))", "max"),
  counted("verified claims use up the settled ones' day", "${good}, ${stage}, of", "${good}, of"),
  counted("claims of every origin share one day", "of ${place}`", "of everything`"),
  counted("claims use up the owner's day", "if (isOwner) {", "if (false) {"),
  counted("what others used up costs the payer", "take(`${good} of payer ${payer}`, now, max, -amount)", "Effect.void"),
  counted(
    "a day's use is not bounded",
    "where catalog_quotas.used + excluded.used <= ${max} returning 1",
    "returning 1"
  ),
  first("one authorization lists without end", "if (taken.length === 0)", "if (false)"),
  first(
    "an authorization is used up by what lists nothing",
    "if (recorded?.resourceId === undefined)",
    "if (false as boolean)"
  ),
  inTurns(
    "a flood keeps the places that it has",
    "if (this.#waiting >= this.#waitingMax && !this.#makeRoom(name, place)) return false",
    "if (this.#waiting >= this.#waitingMax) return false"
  ),
  inTurns("places to wait in are without number", "this.#waiting >= this.#waitingMax &&", "false &&"),
  inTurns(
    "what was only verified keeps its place before what was paid for",
    "!isFree && this.#evict(countFree, 0)",
    "false"
  ),
  inTurns(
    "a payer's second turn comes before another's first",
    "this.#places.delete(name)\n    if (places.length > 0) this.#places.set(name, places)",
    ""
  ),
  first("what others used up is refused", 'share === "payer_used_up"', "share"),
  first("a payer that used up its own day is held", 'share === "payer_used_up"', 'share === ("none" as string)'),
  hinted("one payer takes all probe slots", "count((hint) => hint.payer === payer) >= perPayerMax", "false"),
  hinted(
    "one origin takes all probe slots",
    "count((hint) => hint.identity.origin === identity.origin) >= perOriginMax",
    "false"
  ),
  hinted("the same resource waits twice", "waiting.has(keyOf(identity))", "false")
]

const ofReads: ReadonlyArray<Mutation> = [
  verified("the origin's words are not listed", "words === undefined ? false : yield* list(row, words, now)", "false"),
  verified(
    "what an operator took out is listed anew",
    'isHeld(row) || verdict._tag === "Removed" ? undefined',
    'verdict._tag === "Removed" ? undefined'
  ),
  verified(
    "a probe of the same declaration makes a version",
    "versions.bodyOf(words).hash === row.version_hash",
    "false"
  ),
  verified("one dead probe is enough", "const deadProbesMax = 2", "const deadProbesMax = 1"),
  verified("a sign of life does not clear a dead probe", 'asked.life === "alive" ? 0 : probe.dead', "probe.dead"),
  verified("what could not be asked counts as dead", 'life !== "alive" && life !== "unknown"', 'life !== "alive"'),
  verified("a dead listing stays active", "!isDead(life) || dead < deadProbesMax ||", "true ||"),
  verified(
    "an origin that answers revives nothing",
    'life === "alive" && isStale && row.state_reason !== "not_seen"',
    "false"
  ),
  verified("an answering origin revives an unpaid listing", 'isStale && row.state_reason !== "not_seen"', "isStale"),
  verified("probes that could not run count", 'if (life === "unknown") return', ""),
  executed(
    "the origin's payee waits although the origin offers its listing",
    "words === undefined ? contradiction : displacement",
    "contradiction"
  ),
  executed(
    "a squatter stays the owner",
    "set ownership = 'proven', pay_tos = ${payTos}",
    "set ownership = 'proven', pay_tos = pay_tos || ${payTos}"
  ),
  sold("a sight revives what its origin does not have", "and coalesce(state_reason, 'not_seen') = 'not_seen'", ""),
  asked("a tool's or a body's page is asked", "safeMethods.filter((one) => methods.includes(one))", "methods"),
  asked("a dynamic route is probed unchanged", 'identity.type === "mcp" || isDynamic', 'identity.type === "mcp"'),
  asked("an origin is asked without end", "before.own + questions > livePerMinuteMax.own", "false"),
  asked("claims use up an origin's questions", "before[share] + questions > livePerMinuteMax[share]", "false"),
  probed("what differs and was free asks as the seller's own", "free = excluded.free and", "free = false and"),
  probed("a free claim makes free what was paid for", "(p.free or p.due_at > ${soon})", "true"),
  settledBy("a probe requested during another is lost", "case when due_at < leased_until then", "case when false then"),
  leasing("a lease leaves its probe due", "leased_until = ${until}, due_at = ${until}", "leased_until = ${until}"),
  leasing("claims are probed in the turn of sellers", "askDue(false)", "askDue(true)"),
  leasing("what is asked for waits for the next tick", "yield* onAsked(Effect.andThen(begin, actor.wake))", ""),
  leasing("a listing that waits for its probe is probed ever more rarely", "wasDue ? restMin : ", ""),
  leasing("what was paid for waits for what was free", "not free and due_at < leased_until", "false"),
  raised("a sold listing's probe stays behind the claims", "set stands = true, free = false", "set stands = stands"),
  documented("every probe fetches the document", "now - at < config.probePauseSeconds * 1_000", "false"),
  documented("documents are kept without bound", "if (all <= keptBytesMax) break", "break"),
  read("a document's URLs are no entries", 'typeof given === "string" ? { resource: given } : given', "given"),
  read(
    "a document speaks of other origins",
    'if (spelled.origin !== base) return unusable(named, toolName, "other_origin")',
    ""
  ),
  read("a page that is no 402 speaks", "if (status !== 402) return undefined", ""),
  read("an amount is any text", "!canonicalAmount.test(amount)", "false"),
  read("options of other networks are listed", "Option.isNone(network) || !isRecipient(payTo)", "!isRecipient(payTo)"),
  read("a buyer's extension is reported for the origin", "reported.filter(isSellersExtension)", "reported"),
  read("a page declares another method than was asked", '(input["method"] ?? method) === method', "true")
]

const described = inFile("ownership/OpenApiWire.ts", "originWire")
const priced = inFile("pricing.ts", "originWire")
const toolRead = inFile("ownership/ToolWire.ts", "origins")
const toolCall = inFile("ownership/callTool.ts", "origins")

const probedBy = inFile("ownership/OriginProbes.ts", "look.daily")

const ofProbes: ReadonlyArray<Mutation> = [
  read(
    "a manifest's entry of another origin is dropped",
    'return "reason" in read ? [read] : []',
    'return "reason" in read && read.reason !== "other_origin" ? [read] : []'
  ),
  read("an entry is named in its whole length", "text.slice(0, entryLengthMax)", "text"),
  described("operations of another server are dropped", ": readUnusableEntry(prefix + path, base)", ": []"),
  probedBy("a look's answer names any number of entries", "unusable.slice(0, listedMax)", "unusable"),
  probedBy("a look names one entry several times", "unusable: distinct([", "unusable: Array.from([")
]

const againOf = inFile("store/Resources.ts", "probes")
const corrected = inFile("ownership/Origins.ts", "look.daily")

const ofListed: ReadonlyArray<Mutation> = [
  probedBy(
    "a look asks for no probe of what is listed",
    "const requested = yield* inStatement(requestProbesOf(sql, { origin, max: listedMax }, config, now))",
    "const requested = 0 * now.getTime()"
  ),
  inFile("store/Resources.ts", "look.daily")("a look asks for what was removed", "and state <> 'removed'", ""),
  againOf("a look asks for probes without bound", "limit ${max})", ")"),
  againOf("a look asks for what is shown before what is hidden", "order by state = 'active', ", "order by "),
  againOf(
    "a look of anyone uses up the seller's own probes",
    "isFree: true, now }), (rows)",
    "isFree: false, now }), (rows)"
  ),
  againOf("a look probes other origins", "where origin = ${origin} and state", "where state"),
  corrected(
    "a method that the documents contradict is kept",
    "const corrected = isOther ? among(said.methods) : []",
    "const corrected = among([])"
  )
]

const ofDocuments: ReadonlyArray<Mutation> = [
  toolRead(
    "a tool is called that no document allows",
    "if (unpaidCall === true) return [{}]",
    "if (unpaidCall !== 7) return [{}]"
  ),
  toolCall(
    "a server without sessions is called in the era of sessions",
    "isOlder || !(yield* isStateless(post))",
    "true"
  ),
  toolCall("requests without a session do not mirror their tool", "...mirrored,", ""),
  toolCall("a tool is called with headers that no schema may ask for", "if (mirrored === undefined)", "if (false)"),
  toolRead(
    "a demand of a type of its own is not read",
    'if (result["resultType"] === "payment_required")',
    "if (false)"
  ),
  toolRead("a tool that asks for input is free", '!wholeResults.has(result["resultType"])', "false"),
  toolRead("another tool's permission is this one's", "if (toolName !== identity.toolName) return []", ""),
  toolRead("arguments of any length are sent", "JSON.stringify(unpaidCall).length <= argumentsLengthMax", "true"),
  asked(
    "unpaid calls are without number",
    "others.length + (args === undefined ? 0 : requestsOfCall)",
    "others.length"
  ),
  described("a range is a price", 'return mode === "fixed" &&', "return"),
  described(
    "a price in any currency is one in this asset",
    "isOfCurrency && amount !== undefined",
    "amount !== undefined"
  ),
  priced("a price finer than the asset is cut", '|| fraction.replace(/0+$/, "").length > decimals', ""),
  described(
    "one of several recipients is taken for all",
    "payTos.length === 1 ? payTos[0]",
    "payTos.length > 0 ? payTos[0]"
  ),
  described("another server's paths are the origin's", "return `${origin === base ?", "return `${true ?"),
  described("a page is not asked for what it says itself", '|| method === "GET" || method === "HEAD"', "")
]

const ofRank: ReadonlyArray<Mutation> = [
  sold("dust earns rank", "g.amount >= ${dustBelow}", "true"),
  sold("paying oneself earns rank", "and g.payer <> g.pay_to", ""),
  sold("paying in a circle earns rank", "where p.payer = g.pay_to and g.payer = any(o.pay_tos)", "where false"),
  sold(
    "a payer earns with each payment",
    "s.earning > 0 and p.counts is distinct from true as earned",
    "s.earning > 0 as earned"
  ),
  sold("recent payers are for ever", "and p.counts and p.last_settled_at > ${recently}", "and p.counts")
]

const browsed = inFile("discovery/Counts.ts", "evidenceOrder.daily")
const follows = inFile("discovery/conditions.ts", "evidenceOrder.daily")
const together = inFile("discovery/batchPages.ts", "gatherPages")
const paged = inFile("discovery/Browse.ts", "evidenceOrder.daily")
const circled = inFile("store/findCircles.ts", "evidenceOrder.daily")
const was = inFile("store/storeSightings.ts", "evidenceOrder.daily")

const ofOrder: ReadonlyArray<Mutation> = [
  browsed(
    "one seller fills the first page",
    "const { hits, isCrowded } = spreadSellers(rows, (id) => byId.get(id))",
    "const { hits, isCrowded } = { hits: rows, isCrowded: false }"
  ),
  browsed("claimed listings come before backed ones", "order by backed desc, id desc", "order by id desc"),
  follows("the first ones come again behind themselves", "    sql`r.id <> all (${first})`,\n", ""),
  paged(
    "what is merely claimed is left out",
    "return [...above, ...(yield* tier(false, others, filters, left))]",
    "return above"
  ),
  follows(
    "what has risen meanwhile is lost",
    "sql`(${hadEvidence(sql, asOf)}) is not true`",
    "sql`r.standing_at is null`"
  ),
  together("pages of one moment get each other's rows", "pages[row.at] = bodiesOf(row)", "pages[0] = bodiesOf(row)"),
  together("pages of another size are cut alike", "`${hasEvidence} ${count}`", "`${hasEvidence}`"),
  together("backed rows are mixed with the others", "`${hasEvidence} ${count}`", "`${count}`"),
  was("a self-paid listing is backed", "a.earned > 0 and r.standing_at is null", "r.standing_at is null"),
  circled("a circle earns", "earned = greatest(0, a.earned - e.earned)", "earned = a.earned"),
  circled("a circle earns again", "set counts = false, circle = true from", "set counts = false from"),
  circled("a market is a circle", "2 * count(m.node) > count(*)", "count(m.node) > 0"),
  circled("a large circle is a market", "2 * count(m.node) > count(*)", "count(m.node) > count(*)"),
  circled(
    "every payee that pays is in a circle",
    "select b.start, e.payer from back b join edges e on e.start = b.start and e.pay_to = b.node",
    "select b.start, e.payer from back b join edges e on e.start = b.start"
  ),
  circled(
    "a former member of a circle keeps its backing",
    "set standing_at = null from lowered",
    "set standing_at = standing_at from lowered"
  )
]

const known = inFile("OutcomeCache.ts", "sightings")
const recalled = inFile("Observer.ts", "crowding")
const stateKeyed = inFile("store/Resources.ts", "sightings")
const seen = inFile("store/Sightings.ts", "sightings")

const ofMemory: ReadonlyArray<Mutation> = [
  known("a listing in another state is served from the cache", "read.stateHash === stateHash && ", ""),
  known("the cached state never expires", "read.stateHash === stateHash && now - read.readAt <= cacheMillis", "true"),
  known("a read before the validation counts", "read.readAt < checkedAt", "false"),
  known("a declaration is never validated again", "now - known.validatedAt > validatedMillis", "false"),
  stateKeyed("the state is the same for another owner", "array_to_string(pay_tos, ' ')", "''"),
  stateKeyed(
    "the state hash leaves out the state",
    "concat_ws(' ', state, verification,",
    "concat_ws(' ', verification,"
  ),
  stateKeyed("the state hash leaves out the version", "grade, version_hash, array", "grade, array"),
  stateKeyed("the state hash leaves out the grade", "verification, grade, version_hash", "verification, version_hash"),
  seen("a sale waits with what was only seen", "!isPressing && pending.isPressing", "false"),
  seen("what was only seen is stored each second", "pending.isPressing ? gather : beat", "gather"),
  recalled("a sale is answered from memory", 'observation.stage === "verified" ? ', "true ? "),
  recalled("what is recalled is not seen", 'decision !== "rejected") sightings.seen', "false) sightings.seen"),
  recalled("other terms are the same declaration", "payment.resource, ...terms]", "payment.resource]"),
  known("the memory of texts has no bound", "|| this.#characters + digest.length > charactersMax", "")
]

const ofControl: ReadonlyArray<Mutation> = [
  bound("a caller without a key declares", 'if (!principal.keyed) return "claimed"', ""),
  bound("a label answers for every recipient", "?.includes(payTo) === true", " !== undefined"),
  bound(
    "one key's recipient is another's",
    "where principal = ${owner} and pay_to = ${payTo}`",
    "where pay_to = ${payTo}`"
  ),
  challenged("a challenge of another host is answered here", "Tollkeeper at ${host}: ", "Tollkeeper: "),
  challenged("a challenge of another network is answered here", "by ${owner} on ${network},", "by ${owner},"),
  inFile("OutcomeCache.ts", "hostile.daily")(
    "a name that is dropped is not said",
    "dropped === undefined ? {} : { dropped }",
    "{}"
  ),
  challenged("a challenge holds for ever", "!(end > (yield* Clock.currentTimeMillis)) ||", ""),
  challenged("a challenge holds for every key", "text !== textOf(principal, payTo, place, end)", "false"),
  challenged("a forged challenge is accepted", "return isOurs && (yield* isSigned", "return (yield* isSigned"),
  challenged("no signature is required", "isOurs && (yield* isSigned(payTo, challenge, signature))", "isOurs"),
  challenged(
    "a challenge of any length binds any account",
    "if (challenge.length > textLengthMax) return false",
    "if (challenge.length > textLengthMax) return true"
  )
]

const ofHash: ReadonlyArray<Mutation> = [
  reported("the grade is part of the hash", "ownership grade settlements", "ownership settlements"),
  reported("payments are part of the hash", "grade settlements payers", "grade payers"),
  reported("the last probe is part of the hash", "priceChangedAt lastLookAt", "priceChangedAt")
]

export const mutations: ReadonlyArray<Mutation> = [
  fenced(
    "a probe of a lost resource speaks of another",
    "probed !== undefined && identityOf(probed) !== identityOf(row)",
    "false"
  ),
  ...ofGrades,
  ...ofEvidence,
  ...ofQuotas,
  ...ofReads,
  ...ofProbes,
  ...ofListed,
  ...ofDocuments,
  ...ofRank,
  ...ofOrder,
  ...ofMemory,
  ...ofControl,
  ...ofHash
]
