// Removes the guards of the edge, one at a time: authentication, validation of bodies and RPC answers, what the signer
// signs, what an extension may do. The tests of each guard's own file must fail.
import type { Mutation } from "./Mutation.ts"

const vitest = (...files: ReadonlyArray<string>) => [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--config",
  "test/vitest.config.ts",
  ...files
]

/** Guards of one file, each caught by one test file. */
const guards = (
  file: string,
  test: string,
  list: ReadonlyArray<readonly [name: string, from: string, to: string]>
): ReadonlyArray<Mutation> =>
  list.map(([name, from, to]) => ({ name, changes: [{ file, from, to }], catcher: vitest(test) }))

export const mutations: ReadonlyArray<Mutation> = [
  ...guards("kernel/http/BoundedJson.ts", "test/kernel/http/BoundedJson.test.ts", [
    ["JSON of any depth", "this.#open.length <= this.#bounds.depthMax", "this.#open.length <= 1e9"],
    ["any number of values", "++this.#values > valuesMax", "++this.#values > 1e9"],
    ["any number of values in members", "++this.#memberValues > valuesMax", "++this.#memberValues > 1e9"],
    [
      "one member's error fails all members",
      "if (this.#member === undefined) return message",
      "if (message !== '') return message"
    ],
    ["a faulty member is kept", "if (!dropped.has(name)) continue", "if (name !== '') continue"],
    ["duplicate keys", "if (container.keys.has(key))", 'if (key === "")'],
    ["__proto__ as a key", 'if (key === "__proto__")', 'if (key === "")'],
    [
      "escaped keys are compared as written",
      "return JSON.parse(text.slice(from, to + 1)) as string",
      "return text.slice(from + 1, to)"
    ],
    ["broken UTF-8", "fatal: true", "fatal: false"]
  ]),
  ...guards("kernel/plugin/Routes.ts", "test/kernel/plugin/Loader.test.ts", [
    ["a route of two owners", "if (before !== undefined)", "if (before?.path === '')"]
  ]),
  ...guards("kernel/plugin/Routes.ts", "test/kernel/http/Route.test.ts", [
    [
      "what a stranger writes into a path is a label",
      "exact.get(path) ?? families.get(firstSegment(path))",
      "exact.get(path) ?? { label: path, isProbe: false }"
    ],
    ["HEAD has rules of its own", "isReading(method) ? found.find", "isReading('') ? found.find"]
  ]),
  ...guards("kernel/http/Route.ts", "test/kernel/http/Route.test.ts", [
    [
      "a route without its rules",
      "withRules(HttpRouter.route(method, path, handler), rulesOf(path, declared))",
      "HttpRouter.route(method, path, handler)"
    ],
    ["served routes without a description", "routes: routes.flatMap(describedIn(tag))", "routes: []"]
  ]),
  ...guards("kernel/http/httpMiddleware.ts", "test/kernel/http/Route.test.ts", [
    ["an undeclared route is for any page", '?.exposure ?? "guarded"', '?.exposure ?? "public"'],
    ["any page may send to a public route", '["GET", "HEAD", "OPTIONS"].includes(method) &&', ""]
  ]),
  ...guards("kernel/http/allowOrigins.ts", "test/kernel/http/Route.test.ts", [
    ["an allowed page reads the operator's", '?.cors === "own"', '?.label === "own"'],
    [
      "a preflight is decided by its own method",
      'method === "OPTIONS" ? (headers["access-control-request-method"] ?? method) : method',
      "method"
    ]
  ]),
  ...guards("kernel/http/readQuery.ts", "test/kernel/http/Route.test.ts", [
    ["a parameter of any form", "form === undefined || form.pattern.test(value)", "form !== null"]
  ]),
  ...guards(
    "kernel/settlement/operators/OperatorAuditLog.ts",
    "test/kernel/settlement/operators/OperatorAuditLog.test.ts",
    [
      ["a move whose end is unknown is noted as refused", "error instanceof SqlError.SqlError", "error.message === ''"],
      [
        "an operator action that is not audited",
        "const ends = yield* Effect.forEach(keepers, (keeper) => keeper(note))",
        "const ends = yield* Effect.succeed([] as Array<RecordOutcome>)"
      ]
    ]
  ),
  ...guards("runtime/answeredBy.ts", "test/runtime/commands/unstarted.daily.test.ts", [
    ["a command makes an empty database and answers from it", 'existsSync(join(folder, "PG_VERSION"))', "true"]
  ]),
  ...guards("plugins/mcp-tools-pay/policy/approvalFiles.ts", "test/runtime/commands/unstarted.daily.test.ts", [
    ["a command that reads makes a folder", "if (!(yield* files.exists(folder))) return []", "yield* made"]
  ]),
  ...guards("runtime/commands/CommandTarget.ts", "test/runtime/commands/unstarted.daily.test.ts", [
    [
      "a tool server's files are read where nothing was started",
      'Object(profile.tree["budget"]).store === "postgres"',
      'Option.isSome(profile.secret("DATABASE_URL"))'
    ]
  ]),
  ...guards("runtime/commands/channels.ts", "test/runtime/commands/unstarted.daily.test.ts", [
    ["channels open leaves a folder behind", "yield* requireNamedDatabase(profile)", ""]
  ]),
  ...guards("runtime/commands/settlementsList.ts", "test/runtime/commands/unstarted.daily.test.ts", [
    [
      "a number is a day of 2001",
      ".test(text) ? Date.parse(text) : Number.NaN",
      ".test(text) ? Date.parse(text) : Date.parse(text)"
    ]
  ]),
  ...guards("runtime/commands/doctor.ts", "test/runtime/commands/unstarted.daily.test.ts", [
    ["doctor asks an RPC without its key", "headersFor(network.rpcHeaders ?? [], url)", "{}"],
    ["doctor advises to stop the facilitator", "return (yield* isFacilitator(port))", "return (port < 0)"]
  ]),
  ...guards("runtime/sentence.ts", "test/runtime/commands/unstarted.daily.test.ts", [
    ["a secret's file that cannot be read is a defect", ' && tag !== "SecretUnreadable"', ""]
  ]),
  ...guards("runtime/commands/CommandTarget.ts", "test/runtime/operators.daily.test.ts", [
    ["a command says to stop what would answer it", "if (holder !== undefined) return", "if (holder?.pid === 0) return"]
  ]),
  ...guards("runtime/platform/nodeHttpCalls.ts", "test/kernel/ledger/makeLedgerRpc.daily.test.ts", [
    [
      "a connection that fails without its code",
      'this.#result("unreachable", systemCode(error))',
      'this.#result("unreachable")'
    ]
  ]),
  ...guards("runtime/askRunning.ts", "test/runtime/operators.daily.test.ts", [
    [
      "another database in a file is not noticed",
      'secretOf(process.env, "DATABASE_URL")',
      'process.env["DATABASE_URL"] || undefined'
    ]
  ]),
  ...guards("runtime/serve.ts", "test/plugins/mcp-tools/transports.daily.test.ts", [
    ["an allowed page reads nothing of a tool server", "chosen?.allowedOrigins ?? []", "[]"]
  ]),
  ...guards("runtime/platform/nodeDisk.ts", "test/kernel/health/watchDisk.test.ts", [
    ["the disk of the database is not watched", ".sort((a, b) => a.freeBytes - b.freeBytes)", ""]
  ]),
  ...guards("kernel/config/Setting.ts", "test/kernel/config/Settings.test.ts", [
    ["an origin that no browser sends", "new URL(page).origin === page.toLowerCase()", 'page !== ""']
  ]),
  ...guards("kernel/ledger/JsonRpc.ts", "test/kernel/ledger/makeLedgerRpc.daily.test.ts", [
    [
      "an endpoint that answers wrong is a silent one",
      "Cause.isTimeoutError(error) ? { isSilent: true } : {}",
      "{ isSilent: true }"
    ]
  ]),
  ...guards("kernel/actor/outages.ts", "test/kernel/actor/outages.test.ts", [
    ["each actor logs an outage of what all share", "if (one.isLogged || (code", "if ((code"],
    ["an outage without its place", 'address ?? places.get(subject) ?? ""', 'address ?? ""'],
    [
      "an answer that is not credible is an outage",
      'isSilent === true ? "the ledger',
      'isSilent !== false ? "the ledger'
    ],
    ["the line of an outage before its code is known", "now - one.began < codeWaitMillis", "now < one.began"],
    ["an actor that asks nothing ends an outage", "if (now - one.failedAt < quietMillis) return false", ""]
  ]),
  ...guards("kernel/platform/DiskSpace.ts", "test/kernel/health/watchDisk.test.ts", [
    ["payments are accepted until the disk is full", "freeBytes >= reserveBytes", "freeBytes > 0"]
  ]),
  ...guards("kernel/payment/settle/settlePayment.ts", "test/kernel/settlement/sponsor.daily.test.ts", [
    ["settle keeps the cause of a busy answer back", "return busyFor(unable.value)", "return busy()"]
  ]),
  ...guards("runtime/answeredBy.ts", "test/runtime/commands/start.test.ts", [
    ["a hosted profile keeps payments in an unnamed folder", 'embeddedFolder(profile, "") !== undefined', "true"]
  ]),
  ...guards("runtime/commands/keys.ts", "test/plugins/dashboard/rotation.daily.test.ts", [
    ["a rotation by the command line that is not audited", `noted({ action: "rotate", subject: what, note })(`, "("]
  ]),
  ...guards("kernel/http/Sessions.ts", "test/kernel/http/Sessions.test.ts", [
    ["a session for ever", "mac === undefined || left <= 0", "mac === undefined"],
    ["a session as long as a clock was ahead", " || left > hoursMax * 3_600 + clockSecondsMax", ""],
    ["an unsigned session", "return proven.length === 0", "return proven.length < 0"],
    ["a session after it was signed out of", "if (ended.has(id!)) return Option.none()", ""],
    ["the first of two cookies", "values.length === 1", "values.length >= 1"],
    ["a cookie of plain HTTP over TLS", "${cookieNameOver(cookieName, overTls)} ${body}", "${cookieName} ${body}"],
    ["a form moves by a session", 'if (request.headers[pageHeader] !== "1") return false', ""],
    [
      "another site moves by a session",
      '(URL.canParse(origin) && new URL(origin).host === request.headers["host"])',
      "URL.canParse(origin)"
    ]
  ]),
  ...guards("plugins/analytics/reports/SettlementList.ts", "test/plugins/analytics/lists.daily.test.ts", [
    ["a page that begins with the last row of the page before", '(isDown ? "<" : ">")', '(isDown ? "<=" : ">=")'],
    [
      "a page that skips what happened at the same moment",
      "(${sql.literal(column)}, analytics_settlements.id)",
      "(${sql.literal(column)}, '00000000-0000-0000-0000-000000000000'::uuid)"
    ]
  ]),
  ...guards("plugins/analytics/reports/ranking.ts", "test/plugins/analytics/history.daily.test.ts", [
    [
      "a leaderboard's page that repeats the last address",
      "and address > ${after.address})",
      "and address >= ${after.address})"
    ],
    [
      "a leaderboard's page that repeats those of other assets",
      "and address > ${page.after?.address",
      "and address >= ${page.after?.address"
    ],
    ["a least volume that is one too much", "amount >= ${min}::numeric", "amount > ${min}::numeric"]
  ]),
  ...guards("kernel/settlement/operators/findByIdentifier.ts", "test/plugins/analytics/lists.daily.test.ts", [
    [
      "an identifier by its beginning",
      "identifier = ${identifier} order",
      "starts_with(identifier, ${identifier}) order"
    ]
  ]),
  ...guards("plugins/batch-store/channelReport.ts", "test/plugins/batch-store/channelReport.test.ts", [
    ["a channel that a cursor repeats", "one.channel_id !== cursor?.slice(-64) && isBehind(one, cursor)", "true"],
    ["channels that a filter of states keeps", '(state === "withdrawing")', "true"]
  ]),
  ...guards("plugins/analytics/badge.ts", "test/plugins/analytics/badge.test.ts", [
    [
      "a badge of uptime that is rounded up",
      "Math.floor(listing.uptime * 1_000)",
      "Math.round(listing.uptime * 1_000)"
    ],
    ["a verified badge whose origin names no recipient", 'listing.ownership === "proven" && ', ""]
  ]),
  ...guards("kernel/accounts/AccountChallenges.ts", "test/plugins/dashboard/account.daily.test.ts", [
    [
      "an account's forged challenge",
      'given === undefined || !isSeal("challenge", text, given)',
      "given === undefined"
    ],
    ["an account's challenge of another host", "if (ofHost !== host)", 'if (ofHost === "")'],
    ["an account's challenge of another network", "if (ofNetwork !== network.id)", 'if (ofNetwork === "")'],
    ["an account's challenge for another account", "if (ofAccount !== account)", 'if (ofAccount === "")'],
    ["an account's challenge for ever", "left > 0 && ", ""],
    ["an account's challenge as long as a clock was ahead", " && left <= leftMillisMax", ""],
    [
      "an account that signed nothing",
      "if (yield* isSigned(account, challenge, signature)) return undefined",
      "return undefined"
    ],
    ["an account's challenge for another purpose", "if (ofPurpose !== purposes[purpose])", 'if (ofPurpose === "")']
  ]),
  ...guards("kernel/accounts/AccountSignatures.ts", "test/plugins/dashboard/account.daily.test.ts", [
    ["an authorization of another contract account", "if (!isOfAccount || ", "if ("],
    [
      "a contract account's authorization for another challenge",
      " || encodeInvocation(entry.rootInvocation) !== encodeInvocation(invocationOf(call))",
      ""
    ],
    ["an authorization that the contract does not accept", '_tag === "Simulated"', '_tag !== ""']
  ]),
  ...guards("kernel/accounts/AccountSessions.ts", "test/plugins/dashboard/account.daily.test.ts", [
    [
      "an account's challenge answered twice",
      "on conflict (challenge) do nothing",
      "on conflict (challenge) do update set token = excluded.token, ended_at = null"
    ],
    [
      "an account's session after its end",
      "where token = ${token} and ended_at is null and until",
      "where token = ${token} and until"
    ],
    [
      "an account's session for ever",
      "and ended_at is null and until > ${now} and",
      "and ended_at is null and ${now}::timestamptz is not null and"
    ],
    [
      "an account's session as long as a clock was ahead",
      "and until <= ${last}`",
      "and ${last}::timestamptz is not null`"
    ],
    ["an account's token in the rows", "token: digest(token)", "token"],
    ["an account's token that was never issued", "isSeal(sealedFor(overTls), random!, sealed!)", 'sealed !== ""'],
    [
      "an account's ended session ends others",
      "where token = ${token} and ended_at is null)`",
      "where token = ${token})`"
    ]
  ]),
  ...guards("plugins/catalog/search/report/SearchReports.ts", "test/plugins/catalog/search/missed.daily.test.ts", [
    [
      "missed words for any key",
      'declared.callers === "operators" ? callers.mayOperate(request) : Option.isSome(callers.reader(request))',
      "Option.isSome(callers.reader(request))"
    ]
  ]),
  ...guards("plugins/catalog/search/report/missedSearches.ts", "test/plugins/catalog/search/missed.daily.test.ts", [
    ["missed words though none are kept", "days === 0 || (isAnswered", "(isAnswered"],
    ["missed words name a person", 'word.includes("@") ||', ""],
    ["missed words of what was found", "(isAnswered && ids.length > 0) || offset > 0", "offset > 0"],
    ["what shows the nearest alone is not missed", "(isAnswered && ids.length > 0)", "ids.length > 0"]
  ]),
  ...guards("plugins/catalog/search/Searcher.ts", "test/plugins/catalog/search/missed.daily.test.ts", [
    ["a guess is reported as an answer", "isAnswered: from?.isAnswered ?? ranking.isAnswered", "isAnswered: true"]
  ]),
  ...guards("plugins/catalog/search/rank/Ranker.ts", "test/plugins/catalog/search/missed.daily.test.ts", [
    [
      "a hit outside the filter is reported as its answer",
      "isAnswered: fit.isFitting && whole.isFitting",
      "isAnswered: whole.isFitting"
    ],
    ["behind the nearest three there are more", "!isCut && (", "("]
  ]),
  ...guards("plugins/catalog/search/rank/Ranker.ts", "test/plugins/catalog/search/filtered.daily.test.ts", [
    [
      "a filter empties an answer that holds what passes it",
      "const passed = yield* passing(",
      "const passed = new Set(), _ = ("
    ]
  ]),
  ...guards("plugins/catalog/search/rank/rankingCursor.ts", "test/plugins/search-semantic/search.daily.test.ts", [
    ["later pages of a partial result are reported as complete", "(isPartial ? partialFlag : 0)", "0"]
  ]),
  ...guards("plugins/catalog/search/rank/rankingCursor.ts", "test/plugins/catalog/search/missed.daily.test.ts", [
    ["later pages of a guess are reported as an answer", "(isAnswered ? 0 : nearestFlag)", "0"]
  ]),
  ...guards("plugins/mcp-tools/discovery/wrapResource.ts", "test/plugins/catalog/search/missed.daily.test.ts", [
    ["an agent is not warned of a guess", "isNearestOnly ? [warnings.nearest] : []", "false ? [warnings.nearest] : []"]
  ]),
  ...guards("plugins/mcp-tools/discovery/searchResources.ts", "test/plugins/catalog/search/missed.daily.test.ts", [
    ["a guess is not marked for an agent", "...(page.nearestOnly ? { nearestOnly: true as const } : {}),", ""]
  ]),
  ...guards("plugins/catalog/search/report/missedSearches.ts", "test/plugins/catalog/search/recount.daily.test.ts", [
    ["missed words of all days for fewer", "coalesce(min(day) >= ${since}::date, true)", "true"],
    ["missed words of days before", "where day >= ${since}::date group by words", "group by words"]
  ]),
  ...guards("kernel/settlement/channels/KeyRotation.ts", "test/plugins/dashboard/rotation.daily.test.ts", [
    [
      "a rotation to other keys than were planned",
      "planned !== undefined && planned !== planIdOf(next)",
      'planned === ""'
    ]
  ]),
  ...guards("plugins/dashboard/AccountRoutes.ts", "test/plugins/dashboard/account.daily.test.ts", [
    [
      "any page ends an account's session",
      "if (!isFromPage(request)) return notFromPage const everywhere",
      "const everywhere"
    ],
    ["any page opens an account's session", "if (!isFromPage(request)) return { refusal: notFromPage }", ""]
  ]),
  ...guards("plugins/catalog/administration/explainListing.ts", "test/plugins/dashboard/account.daily.test.ts", [
    [
      "an account receives all observations",
      "observationsWhere(sql`pay_to = ${payTo}`, paging)",
      "observationsWhere(sql`true`, paging)"
    ]
  ]),
  ...guards("kernel/http/Authentication.ts", "test/kernel/http/Sessions.test.ts", [
    ["a caller's session pays", 'request.method === "GET" ? sessionOf', 'request.method !== "" ? sessionOf']
  ]),
  ...guards("kernel/payment/wire/Wire.ts", "test/kernel/payment/input.daily.test.ts", [
    ["NUL in terms", 'value.isWellFormed() && !value.includes("\\u0000")', "value.isWellFormed()"],
    ["half a surrogate pair in terms", "value.isWellFormed() && !value", "!value"],
    ["keys of terms are not checked", "isKept(key) && isKept(item)", "isKept(item)"]
  ]),
  ...guards("kernel/payment/observePayment.ts", "test/kernel/payment/input.daily.test.ts", [
    ["a dropped extension is not reported", "isDropped === true && extensions.isKnown(key)", "isDropped === undefined"]
  ]),
  ...guards("runtime/platform/httpServer.ts", "test/runtime/stop.daily.test.ts", [
    ["a connection that continues after a stop", "isStopping = true", "isStopping = false"],
    ["an answer that keeps its connection", "for (const response of unanswered.toArray()) sayLast(response)", ""]
  ]),
  ...guards("kernel/ledger/askEndpoints.ts", "test/kernel/ledger/makeLedgerRpc.daily.test.ts", [
    ["one endpoint alone is asked", "Exit.isSuccess(exit.value) ? exit.value.value : yield* next", "yield* exit.value"],
    [
      "a slow endpoint is waited for",
      "Effect.timeoutOption(Fiber.await(fiber), patience)",
      "Effect.asSome(Fiber.await(fiber))"
    ],
    [
      "a provider's pause is not kept",
      "Math.max(Duration.toMillis(duration) * (0.5 + random / 2), retryAfterMillis)",
      "Duration.toMillis(duration) * (0.5 + random / 2)"
    ],
    ["a refusal is the last word", "return isPassing && attempt", "return !isPassing && attempt"]
  ]),
  ...guards("kernel/config/rpcHeaders.ts", "test/kernel/config/Settings.test.ts", [
    ["a provider receives another's key", "header.host === undefined ||", "header.host !== '' ||"]
  ]),
  ...guards("kernel/payment/report/watchBudget.ts", "test/kernel/payment/report/watchBudget.test.ts", [
    ["a budget that runs out in silence", "if (level === 0 ||", "if (level >= 0 ||"],
    ["a budget that is warned of for ever", "before.level >= level", "before.level > 100"]
  ]),
  ...guards("kernel/budget/Budget.ts", "test/kernel/budget/Budget.test.ts", [
    ["a day of the machine's", "const today = Effect.map(time,", "const today = Effect.map(Clock.currentTimeMillis,"],
    ["a key's own bound is not kept", "limits.sponsoredByKeyPerDayStroopsMax?.get(principal) ?? limits", "limits"]
  ]),
  ...guards("kernel/settlement/PubnetGate.ts", "test/kernel/settlement/pubnet.daily.test.ts", [
    ["a gate that says nothing", "if (errors.length === 0)", "if (errors.length >= 0)"],
    ["channels that are never checked", "(yield* OpensChannels) ? [] : required.filter(isLow)", "[]"]
  ]),
  ...guards("runtime/platform/sampler.ts", "test/runtime/platform/telemetry.daily.test.ts", [
    ["background work is traced", 'options.kind === "server"', 'options.kind !== "client"']
  ]),
  ...guards("kernel/settlement/follower/applyDecision.ts", "test/runtime/platform/telemetry.daily.test.ts", [
    ["an outcome that no trace knows", '.pipe(continueTrace("settlement.outcome", record.traceparent))', ""]
  ]),
  ...guards("kernel/payment/Facilitator.ts", "test/runtime/stop.daily.test.ts", [
    [
      "a request that is cut off by a stop",
      "Effect.andThen(closing, Effect.sleep(stoppingWait))",
      "Effect.andThen(closing, Effect.never)"
    ]
  ]),
  ...guards("kernel/settlement/operators/SettlementEvents.ts", "test/kernel/payment/events.daily.test.ts", [
    ["a stream reports other principals' settlements", "sql`principal = ${principal}`", "sql`principal <> ''`"],
    ["no waiter is woken", 'principal === undefined || principals === "all" || principals.has(principal)', "false"]
  ]),
  ...guards("kernel/payment/http/EventStreams.ts", "test/kernel/payment/events.daily.test.ts", [
    [
      "any number of streams of one principal",
      "(this.#open.get(source) ?? 0) < this.#limits.streamsPerPrincipalMax",
      "true"
    ],
    ["any number of streams", "total < this.#limits.streamsMax", "true"],
    [
      "a cursor of a restored journal is silence",
      "return isStrange ? { position: 0n, epoch } : cursor",
      "return cursor"
    ],
    ["a stream outlives the process's will", "Stream.interruptWhen(closing)", "(stream) => stream"]
  ]),
  ...guards("plugins/webhooks/Deliveries.ts", "test/plugins/webhooks/webhooks.daily.test.ts", [
    ["events of a settlement overtake each other", "e.state = 'due' and e.position < d.position", "false"],
    ["a pause is of one message alone", "p.receiver = d.receiver and p.until > clock_timestamp()", "false"],
    ["a pause outlives an operator's replay", "delete from webhooks_pauses where receiver = ${receiver}", "select 1"]
  ]),
  ...guards("plugins/webhooks/Deliveries.ts", "test/plugins/webhooks/Deliveries.test.ts", [
    ["a lease from before lost commits ends another's event", " and settlement = ${settlement}::uuid", ""],
    ["a lease from before lost commits ends another event", "\n    and type = ${type}", ""]
  ]),
  ...guards("plugins/webhooks/MessageWire.ts", "test/plugins/webhooks/webhooks.daily.test.ts", [
    ["a late recorded event says success", 'case "settlement.recorded":', 'case "recorded":']
  ]),
  ...guards("plugins/webhooks/queueEvents.ts", "test/plugins/webhooks/webhooks.daily.test.ts", [
    ["a receiver gets all principals' events", "principal === undefined || principal === fact.principal", "true"]
  ]),
  ...guards("plugins/webhooks/Sender.ts", "test/plugins/webhooks/webhooks.daily.test.ts", [
    ["a receiver's Retry-After is not honoured", "const isAsked = askedMillis > ownMillis", "const isAsked = false"],
    [
      "a receiver rests for ever",
      "Math.min(Duration.toMillis(Headers.retryAfterDelay(asked, nowMillis)), askedMillisMax)",
      "Duration.toMillis(Headers.retryAfterDelay(asked, nowMillis))"
    ],
    ["a webhook follows a redirect", "redirectsMax: 0", "redirectsMax: 3"],
    ["a webhook goes to a private address", "allowLocal: config.allowLocal,", "allowLocal: true,"],
    ["any answer is a delivery", "said >= 200 && said <= 299", "said >= 200"],
    ["nothing is ever given up", ">= config.giveUpAfterMillis", ">= Infinity"],
    ["a webhook carries the time of a wrong clock", "isSkewed ? skewSeconds * 1_000 : 0", "0"]
  ]),
  ...guards("plugins/webhooks/SigningSecrets.ts", "test/plugins/webhooks/rotation.daily.test.ts", [
    ["a webhook's secret goes without an overlap", "if (!force) yield* gapOf(receiver, next)", ""],
    [
      "reading all again leaves none of a webhook's secrets",
      "if (!withoutOverlap) for (const receiver of asked) yield* gapOf(receiver, nextOf(receiver))",
      ""
    ],
    ["any number of webhook secrets sign", "if (secrets.length > secretsMax)", "if (secrets.length > 99)"],
    [
      "an empty rotation of webhook secrets is reported as one",
      "if (changed.added + changed.gone === 0)",
      "if (changed.added < 0)"
    ],
    ["a webhook's new secrets are reported but not used", "signing.set(name, next)", ""]
  ]),
  ...guards("kernel/accounts/KeyRevisions.ts", "test/plugins/webhooks/rotation.daily.test.ts", [
    [
      "keys reread leaves the secrets of webhooks",
      "if (scope.part === allParts || scope.part === part.name)",
      "if (scope.part === part.name)"
    ]
  ]),
  ...guards("kernel/accounts/KeyRevisions.ts", "test/kernel/accounts/keyRevisions.daily.test.ts", [
    ["a removed key is not revoked elsewhere", "for (const key of taken.removed)", "for (const key of [])"],
    ["a start serves revoked keys", "yield* readRevoked\n  })", "})"],
    ["a replica does not poll revocations", "if (newest !== revision) {", "if (newest < revision) {"]
  ]),
  ...guards("kernel/accounts/replicaFaults.ts", "test/kernel/accounts/keyRevisions.daily.test.ts", [
    ["a replica that is behind is not named", "if (other.revision < asked.revision)", "if (other.revision < 0)"],
    ["a replica that lacks a key is not named", "...(lacked.length === 0 ? [] :", "...(lacked.length >= 0 ? [] :"]
  ]),
  ...guards("kernel/http/readBody.ts", "test/kernel/http/readBody.test.ts", [
    ["a compressed body", 'if (encoding !== undefined && encoding !== "identity")', 'if (encoding === "never")']
  ]),
  ...guards("kernel/platform/RequestBytes.ts", "test/kernel/http/readBody.test.ts", [
    ["a body of any length", `if (bytes > bytesMax) return Effect.fail(new BodyReadError({ reason: "too long" }))`, ""],
    ["a body that never comes", "Effect.timeout(longest),", ""]
  ]),
  ...guards("runtime/platform/nodeRequestBytes.ts", "test/runtime/platform/nodeRequestBytes.test.ts", [
    ["a body of any length on node:http", 'if (bytes > bytesMax) return refuse("too long")', ""],
    ["a body that never comes on node:http", "setTimeout(cutOff, millis)", "setTimeout(() => undefined, millis)"],
    ["a body of any length that is here", "if (incoming.readableLength > bytesMax) return tooLong", ""],
    [
      "a body that was cut off is waited for",
      'const cutOff = () => refuse("cut off")',
      "const cutOff = () => undefined"
    ]
  ]),
  ...guards("kernel/stellar/readXdr.ts", "test/kernel/stellar/readXdr.test.ts", [
    ["padding of any bytes", "if (cursor.bytes[i] !== 0) throw malformed", ""],
    ["bytes after the value", "if (cursor.at !== cursor.end) throw malformed", ""],
    ["a bool of any number", "if (value > 1) throw malformed", ""],
    ["a length above its bound", "if (length > lengthMax) throw malformed", ""],
    ["values nested without end", "if (++cursor.depth > cursor.depthMax) throw malformed", "cursor.depth++"],
    ["a kind that the schema does not know", "if (!nameByValue.has(value)) throw malformed", ""],
    ["the bytes of another part are kept", "const from = cursor.at\n    const value", "const from = 0\n    const value"]
  ]),
  ...guards("kernel/stellar/base64.ts", "test/kernel/stellar/readXdr.test.ts", [
    ["bits that no byte uses", "if (last < 0 || rest !== 0) return undefined", "if (last < 0) return undefined"],
    ["letters beyond the alphabet", "code < 128 ? values[code]! : -1", "values[code & 127]!"]
  ]),
  ...guards("runtime/platform/sampler.ts", "test/runtime/platform/sampler.test.ts", [
    ["the lines of each good verification", "fiber.cache.span?.sampled !== false || ", ""],
    ["no line of a trace that is not sent", "reason !== undefined || status !== 200 || ", ""]
  ]),
  ...guards("kernel/cache/memoize.ts", "test/kernel/cache/memoize.test.ts", [
    [
      "texts without number are kept",
      "LruCache<string, { readonly read: A }>(options)",
      "LruCache<string, { readonly read: A }>({ ...options, capacity: 1e9 })"
    ],
    ["long texts are kept", "if (text.length > lengthMax) return read(text)", ""]
  ]),
  ...guards("kernel/cache/BoundedMap.ts", "test/kernel/cache/BoundedMap.test.ts", [
    ["a map without a bound", "if (this.#entries.size > this.#capacity)", "if (this.#entries.size > 1e9)"],
    [
      "the entry in use is evicted",
      "this.#entries.delete(key)\n    this.#entries.set(key, value)\n    return value",
      "return value"
    ]
  ]),
  ...guards("kernel/cache/LruCache.ts", "test/kernel/cache/LruCache.test.ts", [
    ["an expired value is served", "value === undefined || isValid?.(value) === false", "value === undefined"],
    ["caches of one name are not counted together", "if (known !== undefined) return known", ""]
  ]),
  ...guards("kernel/http/Keys.ts", "test/kernel/http/Keys.test.ts", [
    ["a key of any length", "if (secret.length < secretLengthMin)", "if (secret.length < 0)"],
    ["an empty key file removes authentication", "keys.length > 0 && next.length === 0", "next.length < 0"],
    ["a revoked key of the file counts", "revoked = new Set(keys.map(idOf))", "void keys.map(idOf)"],
    ["revoking the last key removes authentication", "keyed: () => allCallers.length", "keyed: () => callers.length"],
    ["two tokens in one header", "/^Bearer ([^\\s,]+)$/i", "/^Bearer ([^\\s,]+)/i"],
    ["another scheme than Bearer", "/^Bearer ([^\\s,]+)$/i", "/^\\w+ ([^\\s,]+)$/i"]
  ]),
  ...guards("kernel/http/csv.ts", "test/kernel/http/csv.test.ts", [
    ["a formula behind a semicolon", `text.slice(begin).replace(formulaWithin, "$1'")`, "text.slice(begin)"]
  ]),
  ...guards("kernel/http/Authentication.ts", "test/kernel/http/Keys.test.ts", [
    ["a right key beyond the rate is accepted", "accepted.get(mark) === true", 'mark !== ""'],
    ["any peer may forward an address", "while (isTrusted(address)) {", "while (hops.length > 0) {"],
    ["the farthest hop is believed", "const next = hops.pop()", "const next = hops.shift()"],
    ["no caller authenticates by key", "if (!keys.keyed()) return", "if (keys.keyed() || !keys.keyed()) return"],
    ["a proxy is this machine", "Object.keys(request.headers).every((header) => !proxyHeader.test(header)) &&", ""],
    ["a proxy of the settings is this machine", " && !isTrusted(peer)", ""]
  ]),
  ...guards("kernel/http/hostValidation.ts", "test/kernel/http/hostValidation.test.ts", [
    [
      "any name is this machine's",
      `!(isLoopback(name) || isAllowedHost(headers["host"], host, allowedHosts))`,
      "false"
    ],
    ["any page may ask", "if (isCrossOrigin(headers, allowedOrigins) && !isPublic())", "if (false)"],
    ["an image may ask", 'return headers["sec-fetch-site"] === "cross-site"', "return false"]
  ]),
  ...guards("kernel/http/addresses.ts", "test/kernel/http/addresses.test.ts", [
    [
      "each IPv6 address is a caller",
      "const groups = [0, 2, 4, 6].map(",
      "const groups = [0, 2, 4, 6, 8, 10, 12, 14].map("
    ],
    ["octal addresses", "/^(0|[1-9]\\d{0,2})$/", "/^\\d{1,4}$/"],
    ["mapped addresses are others", "return mapped ? bytes.slice(12) : bytes", "return bytes"],
    [
      "an instance's service is another behind a translator",
      'const carried = bytes.length === 16 ? carriedV4(address, bytes)?.join(".") : undefined',
      "const carried: string | undefined = undefined"
    ],
    ["a 6to4 form of an instance's service", 'if (inRange(address, "2002::/16")) return bytes.slice(2, 6)', ""]
  ]),
  ...guards("kernel/http/safeFetch.ts", "test/kernel/http/safeFetch.test.ts", [
    [
      "local origins open an instance's service",
      'if (addresses.some(isInstanceAddress)) return yield* refuse("blocked")',
      ""
    ]
  ]),
  ...guards("plugins/catalog/declaration/resourceUrl.ts", "test/plugins/catalog/instanceUrl.test.ts", [
    ["an instance's service is listed", "if (isInstanceAddress(host))", "if (host === undefined)"]
  ]),
  ...guards("kernel/http/RateLimit.ts", "test/kernel/http/RateLimit.test.ts", [
    ["no limit", "if (bucket.tokens < cost) return", "if (bucket.tokens < -1e9) return"],
    [
      "a bucket without a bottom",
      "Math.min(burst, bucket.tokens + elapsed * perSecond)",
      "bucket.tokens + elapsed * perSecond"
    ],
    [
      "rate limit buckets are unbounded",
      "new BoundedMap<string, Bucket>(bucketsMax)",
      "new BoundedMap<string, Bucket>(1e9)"
    ]
  ]),
  ...guards("kernel/http/httpMiddleware.ts", "test/kernel/http/httpMiddleware.test.ts", [
    [
      "a defect's words reach the client",
      '"internal error; the operator finds it in the log by this trace id"',
      "String(Cause.squash(cause))"
    ],
    ["an odd path loses the payment's shape", '.replace(/\\/{2,}/g, "/").replace(/(.)\\/$/, "$1")', ""],
    [
      "queries in the log",
      "annotateLogs({ method, path: path.slice(0, 200)",
      "annotateLogs({ method, path: request.url"
    ],
    ["requests without a name of their own", "half + count.toString(16)", "half + half.toString()"],
    ["a caller's trace that ends here", "within(handler, caller)", "handler"],
    [
      "any interruption taken for a client that hung up",
      "yield* Effect.interruptible(Effect.void)",
      "return yield* Effect.interrupt"
    ]
  ]),
  ...guards("kernel/effect/withDeadline.ts", "test/kernel/effect/withDeadline.test.ts", [
    [
      "a wait without an end",
      `wait.isOver = true
        wait.reported()`,
      "wait.isOver = true"
    ],
    ["the next one to wait is not waited for", "if (this.#sleeper === sleeper) this.#sleeper = undefined", ""],
    ["a leaving waiter cancels the end of the others", "|| !this.#waits.isEmpty) return", ") return"],
    ["an abandoned fiber continues", "fiber.interruptUnsafe()", ""],
    ["an end that has come is not observed", "if (hasEnded) {", "if (hasEnded && !listeners.isEmpty) {"],
    ["a caller that leaves keeps its work running", "ends.finish(wait)\n        leave()", "ends.finish(wait)"],
    ["an owner that ends leaves its work", "this.#running.toArray().filter(", "new Array<AnyFiber>().filter("],
    ["work of an owner that has ended", "this.#isClosed ? Effect.interrupt : ", ""],
    ["a stranger's interruption is the caller's", "Cause.hasInterruptsOnly(exit.cause) ? late", "!exit.cause ? late"]
  ]),
  ...guards("kernel/settlement/channels/askFaucet.ts", "test/kernel/settlement/channels/askFaucet.test.ts", [
    ["a faucet is waited for without end", "Effect.timeout(faucetTimeout),", ""],
    [
      "an unavailable faucet ends the channels' turn",
      'Effect.catch((error) => Effect.logWarning("the faucet did not fund the sponsor", error._tag))',
      ""
    ]
  ]),
  ...guards("plugins/dashboard/web/format.ts", "test/plugins/dashboard/format.test.ts", [
    ["a lookalike host is shown unchanged", "return `${protocol}//${host}${text.slice(before.length)}`", "return text"],
    ["a comma anywhere in an amount", "[0-9]{1,3}(?:,[0-9]{3}){1,7}", "[0-9,]{1,24}"]
  ]),
  ...guards("plugins/dashboard/web/ask.ts", "test/plugins/dashboard/format.test.ts", [
    ["codes are shown", 'body.error.replaceAll("_", " ")', "body.error"]
  ]),
  ...guards("plugins/dashboard/web/identifiers.ts", "test/plugins/dashboard/format.test.ts", [
    ["a hash that was broken over lines", 'text.replaceAll(" ", "")', "text"],
    ["a longer text of a link for a hash", "(?![0-9a-z-])", ""]
  ]),
  ...guards("plugins/analytics/reports/Find.ts", "test/plugins/analytics/lists.daily.test.ts", [
    ["a hash by its beginning for one by its ends", "and right(transaction_hash, ${end.length}) = ${end}", ""],
    [
      "a label in its own case alone",
      "position(${asked} in lower(principal)) > 0",
      "position(${words} in principal) > 0"
    ]
  ]),
  ...guards("plugins/analytics/reports/Pulse.ts", "test/plugins/analytics/lists.daily.test.ts", [
    ["counts of all assets beside one's amounts", "chosen === undefined ? sql`true`", "chosen !== '' ? sql`true`"]
  ]),
  ...guards("kernel/effect/LinkedList.ts", "test/kernel/effect/LinkedList.test.ts", [
    ["a removed node links to its predecessor", "place.previous = undefined", ""],
    ["a removed node links to its successor", "place.next = undefined", ""],
    ["a node removed twice removes another", "if (place.isRemoved) return false", ""],
    ["a node after a removed one is lost", "else after.previous = before", ""]
  ]),
  ...guards("kernel/effect/withSpanIfSampled.ts", "test/kernel/http/httpMiddleware.test.ts", [
    ["spans of an unsampled trace", "isTracing(fiber) && fiber.cache.span?.sampled === true", "isTracing(fiber)"]
  ]),
  ...guards("runtime/LineWriter.ts", "test/runtime/LineWriter.test.ts", [
    ["a warning that waits", "isUrgent || waiting.length >= waitingMax", "waiting.length >= waitingMax"],
    ["lines without number wait", "isUrgent || waiting.length >= waitingMax", "isUrgent"],
    ["a line that is written twice", 'waiting = ""\n    write(lines)', "write(lines)"]
  ]),
  ...guards("kernel/payment/wire/Wire.ts", "test/kernel/payment/wire/Wire.test.ts", [
    ["two networks in one payment", "if (accepted?.network !== required.network)", "if (accepted === undefined)"],
    ["a spelling that is off", "|| !options.words.dialects.includes(required.dialect)", ""],
    ["any version", "if (value !== 2) throw", "if (value === 0) throw"],
    ["amounts with zeros before them", "const decimal = /^(0|[1-9][0-9]{0,38})$/", "const decimal = /^[0-9]{1,39}$/"],
    [
      "an identifier of any form",
      'if (typeof id !== "string" || !identifierPattern.test(id))',
      'if (typeof id !== "string")'
    ],
    ["a required identifier may be missing", "if (required === true) throw", "if (required === 7) throw"],
    ["the fingerprint leaves out the resource", "resource: resource ?? null", "resource: null"],
    ["the fingerprint keeps the spelling", "isFields(terms) ? { ...terms, network } : terms", "terms"],
    [
      "a failed settlement without its transaction",
      'transaction: Option.getOrElse(answer.transaction, () => ""),',
      "...Option.match(answer.transaction, { onNone: () => ({}), onSome: (transaction) => ({ transaction }) }),"
    ],
    [
      "an open settlement is a failure",
      "errorReason: pending, errorMessage: message",
      'errorReason: spelled.replace("status_unknown", "failed"), errorMessage: message'
    ]
  ]),
  ...guards("kernel/payment/settledExtensions.ts", "test/kernel/payment/settledExtensions.test.ts", [
    ["a hook that throws changes the answer", "Effect.suspend(() => hook.add(answer))", "hook.add(answer)"],
    ["a hook may take for ever", "timeout: hookMillisMax,", 'timeout: "1 day",'],
    ["a late hook is asked for each answer", "restsUntil.set(hook, now + restMillis)", "restsUntil.set(hook, now)"],
    ["hooks may add any size", "if (longer > extensionsLengthMax) return length", "if (longer < 0) return length"]
  ]),
  ...guards("plugins/receipts/ReceiptRoutes.ts", "test/plugins/receipts/receipts.daily.test.ts", [
    [
      "a stranger reads a receipt",
      "rows.filter((row) => mayRead(row, reader))",
      "rows.filter(() => reader !== undefined)"
    ]
  ]),
  ...guards("plugins/receipts/log/Epochs.ts", "test/plugins/receipts/log.daily.test.ts", [
    [
      "a log that lost entries continues",
      "if (known.epoch > epoch || known.size > Number(size)) return",
      "if (known.epoch > epoch) return"
    ]
  ]),
  ...guards("kernel/payment/observePayment.ts", "test/kernel/payment/observePayment.test.ts", [
    [
      "an extension that throws changes the answer",
      "Effect.suspend(() => extension.observe(observation))",
      "extension.observe(observation)"
    ],
    ["an extension may take for ever", "Effect.timeoutOption(Fiber.await(fiber), timeMax)", "Fiber.await(fiber)"],
    [
      "an extension that fails to recall changes the answer",
      "yield* Effect.logError(`extension ${key} failed to recall`, defect)",
      "throw defect"
    ]
  ]),
  ...guards("kernel/ledger/Ed25519.ts", "test/kernel/ledger/Ed25519.test.ts", [
    ["a key of small order", "  !isSmallOrder(publicKey) &&\n", ""],
    ["an R of small order", "  !isSmallOrder(signature) &&\n", ""],
    ["the sign bit hides a point", "(point[31]! & 0x7f) === known[31]", "point[31] === known[31]"]
  ]),
  ...guards("kernel/stellar/Envelope.ts", "test/kernel/stellar/Envelope.test.ts", [
    [
      "an envelope of any length",
      'if (text.length > Math.ceil(envelopeBytesMax / 3) * 4) return malformed("too large")',
      ""
    ],
    ["an envelope of any depth", "const depthMax = 1_000", "const depthMax = 1_000_000"]
  ]),
  ...guards("kernel/stellar/TransferEvents.ts", "test/kernel/stellar/TransferEvents.test.ts", [
    [
      "an unreadable movement is none",
      'if (contract === undefined || amount === undefined || first === undefined) return { _tag: "Unreadable", contract }',
      'if (contract === undefined || amount === undefined || first === undefined) return { _tag: "Other", contract }'
    ],
    ["a diagnostic event moves tokens", "event.type === eventKind.contract", "event.type >= 0"]
  ]),
  ...guards("runtime/platform/nodeHttpCalls.ts", "test/runtime/platform/nodeHttpCalls.test.ts", [
    ["a connection for each call", "const free = this.#free.pop()", "const free = undefined as Connection | undefined"],
    [
      "a stale connection is an answer",
      "const isStale = wasUsed && received.status === 0 && !this.#isOver",
      "const isStale = false"
    ],
    [
      "connections without end",
      "if (this.#all.size >= connectionsMax) return void this.#waiting.add(use)",
      "if (this.#all.size > 1e9) return void this.#waiting.add(use)"
    ],
    ["an answer of any length", `if (received.bytes > bytesMax) this.#result("too long")`, ""],
    ["a packed answer of any length", "{ maxOutputLength: bytesMax }", "{}"],
    [
      "a call without an end",
      `setTimeout(() => result("timeout"), call.timeoutMillis)`,
      `setTimeout(() => result("timeout"), 2e9)`
    ],
    [
      "a call without a waiter continues",
      `isResult = true
 clearTimeout(timer)
 calling.stop()`,
      "isResult = true"
    ]
  ]),
  ...guards("kernel/ledger/JsonRpc.ts", "test/kernel/ledger/makeLedgerRpc.daily.test.ts", [
    ["any network is asked", "if (passphrase !== options.passphrase) return", 'if (passphrase === "") return'],
    [
      "the first call of any duration",
      "timeout(Effect.andThen(admit(url), question), options.timeout)",
      "andThen(admit(url), question)"
    ],
    [
      "a call of any duration",
      "const timeoutMillis = Duration.toMillis(timeout)",
      "const timeoutMillis = 1e9 + Duration.toMillis(timeout)"
    ],
    ["an answer to another call", "if (envelope.id !== id) return", "if (envelope.id === undefined) return"],
    [
      "a failed endpoint stays the first",
      "Effect.andThen(setBad(url, penaltyMillis), Effect.fail(errorIn(method, error)))",
      "Effect.fail(errorIn(method, error))"
    ],
    ["a slow endpoint stays the first", "slow: setBad(url, penaltyMillis)", "slow: Effect.void"],
    ["a trace that ends at the ledger's door", "{ ...headersOf(url), traceparent }", "headersOf(url)"],
    [
      "a submission goes everywhere",
      "once: (method, params, answer) => Effect.flatMap(ordered, ([first]) => call(first!.url, method, params, answer))",
      "once: (method, params, answer) => endpoints.ask(method, params, answer)"
    ],
    ["an endpoint that is behind keeps its turn", "unfit.has(place) ? 1 : 0", "unfit.has(place) ? 0 : 0"]
  ]),
  ...guards("kernel/ledger/makeLedgerRpc.ts", "test/kernel/ledger/makeLedgerRpc.daily.test.ts", [
    ["another transaction's end", "|| hashes === undefined || !isAboutThem(hashes))", "|| hashes === undefined)"],
    ["a status against its result", 'succeeded !== (answer.status === "SUCCESS") || ', ""],
    [
      "the fee of the inner result",
      "feeChargedStroops: result.feeCharged,",
      "feeChargedStroops: (result as any).result.innerResultPair?.result.feeCharged ?? result.feeCharged,"
    ],
    ["another transaction's acceptance", "if (answer.hash !== outerHash) return", 'if (answer.hash === "") return'],
    [
      "two fees of one simulation",
      "if (data.resourceFee !== BigInt(answer.minResourceFee!))",
      "if (data.resourceFee === -2n)"
    ],
    [
      "a restore that the transaction does not do is a success",
      "if (answer.restorePreamble && restoredEntries === 0)",
      "if (answer.error && restoredEntries === 0)"
    ]
  ]),
  ...guards("kernel/ledger/ledgerTrustedTime.ts", "test/kernel/time/trustedTime.daily.test.ts", [
    ["a clock that is years ahead believed", "machine - ledger > aheadMillis ? ledger", "machine < ledger ? ledger"]
  ]),
  ...guards("kernel/time/trustedTime.ts", "test/kernel/time/trustedTime.daily.test.ts", [
    ["stale before the ledger's time is known", "isSure ? now : 0", "now"]
  ]),
  ...guards("plugins/ledger-local/node/fork/Upstream.ts", "test/kernel/setClock.test.ts", [
    [
      "another network's answer waited for by the machine's clock",
      "left = end - (yield* monotonicMillis)",
      "left = end - (yield* Effect.clockWith(({ currentTimeMillis }) => currentTimeMillis))"
    ]
  ]),
  ...guards("kernel/actor/Actor.ts", "test/kernel/actor/Supervisor.test.ts", [
    ["each reconciler wakes the process for itself", "millis < restTogetherMin || millis === Infinity", "millis > 0"],
    [
      "a rest that is longer than was said",
      "millis - ((now + millis) % restTogetherStep)",
      "millis + ((now + millis) % restTogetherStep)"
    ],
    ["a short rest cut shorter", "millis < restTogetherMin ||", ""],
    ["each run is by timer", 'Option.isSome(woken) ? "wake" : "timer"', '"timer"'],
    ["a failed run is published as done", 'Exit.isSuccess(exit) ? "succeeded" : "failed"', '"succeeded"']
  ]),
  ...guards("kernel/payment/report/reportReconcilers.ts", "test/kernel/payment/report/reportReconcilers.test.ts", [
    ["readiness of any length", "runs.slice(0, shownMax)", "runs"],
    ["a failing reconciler is ready", 'failing.length === 0 ? "ready" : "degraded"', '"ready"']
  ]),
  ...guards("kernel/effect/circuitBreaker.ts", "test/kernel/setClock.test.ts", [
    ["a circuit's open time by the machine's clock", "currentTimeMillis: {", "monotonicUnused: {"]
  ]),
  ...guards("kernel/effect/circuitBreaker.ts", "test/kernel/effect/circuitBreaker.test.ts", [
    ["an ignored error opens the circuit", "isIgnored) ? Breaker.ignored :", "isIgnored) ? Breaker.failure() :"],
    ["a probed circuit is not open", 'state._tag === "HalfOpen" && state.probing', "false"]
  ]),
  ...guards("kernel/time/monotonicMillis.ts", "test/kernel/setClock.test.ts", [
    [
      "rests by the machine's clock",
      "= Effect.map(Clock.monotonicTimeNanos, (nanos) =>\n  Number(nanos / 1_000_000n)\n)",
      "= Clock.currentTimeMillis"
    ]
  ]),
  ...guards("kernel/time/monotonicMillis.ts", "test/kernel/ledger/LedgerClock.test.ts", [
    [
      "a ledger's age by the machine's clock",
      "= Effect.map(Clock.monotonicTimeNanos, (nanos) =>\n  Number(nanos / 1_000_000n)\n)",
      "= Clock.currentTimeMillis"
    ]
  ]),
  ...guards("kernel/ledger/LedgerClock.ts", "test/kernel/ledger/LedgerClock.test.ts", [
    ["a ledger of any age", "isFresh: ageMillis <=", "isFresh: ageMillis >= 0 || ageMillis <="],
    ["endpoints that differ are asked alike", "yield* rpc.setUnfit(", "void ("],
    ["what is in doubt is refused", "Effect.andThen(poll, follower.noDoubt)", "poll"],
    ["a wrong clock is not reported", "    yield* warnOfSkew\n", ""],
    [
      "idle polling is as frequent",
      "Math.max(betweenPolls(polls, isAttended), restUntil(polls, isAttended) - at)",
      "betweenPolls(polls, isAttended)"
    ],
    [
      "active polling starts before the next ledger is expected",
      "return advancedAt + restShareAttended * paces.soonest() * 1_000",
      "return -Infinity"
    ],
    [
      "ledgers with something in them expected as late as those that are left out",
      "restShareAttended * paces.soonest()",
      "restShareAttended * paces.pace()"
    ],
    [
      "payments reckoned by the pace of ledgers that are left out",
      "secondsPerLedger: paces.busy()",
      "secondsPerLedger: paces.pace()"
    ],
    [
      "a ledger wakes every replica while idle",
      'if (change === "advanced" && !(yield* interest.isThere)) return\n',
      ""
    ],
    [
      "a reset ledger is not reported while idle",
      'if (change === "advanced" && !(yield* interest.isThere)) return',
      "if (!(yield* interest.isThere)) return"
    ],
    [
      "the first payment after idling is verified against an old ledger",
      "isBehind(follower.known(), at) ? Effect.andThen(catchingUp.begin, following.wake) : following.wake",
      "following.wake"
    ],
    [
      "a payment before the first poll is refused",
      "follower.known().advancedAt === undefined ? Effect.asVoid(Effect.timeoutOption(newLedger.await, patience)) :",
      ""
    ],
    [
      "an interest that never ends",
      "at - renewedAt <= interestMillis +",
      "at - renewedAt <= Infinity * interestMillis +"
    ]
  ]),
  ...guards("kernel/ledger/headSelection.ts", "test/kernel/ledger/LedgerClock.test.ts", [
    ["any ledger ahead is the next", 'return ledgers <= reachOf(belief, at, pace) ? "next" : "ahead"', 'return "next"'],
    [
      "a leap that begins elsewhere each time",
      "one.sequence <= before.first.sequence + burstMax",
      "one.sequence <= Infinity + burstMax"
    ],
    ["no jump", "if (received !== undefined && isConfirmedAhead", "if (received === null && isConfirmedAhead"],
    [
      "a leap that does not move",
      "const hasMoved = newest.sequence > first.sequence",
      "const hasMoved = newest.sequence > 0"
    ],
    [
      "a leap against its close times",
      "hasMoved && continues(belief.newest, newest, pace)",
      "hasMoved && continues(first, newest, pace)"
    ],
    ["a leap in two moments", "const beyondMovingMillis = 5_000", "const beyondMovingMillis = 1_000"],
    ["a leap that does not advance is accepted within half a minute", "beyondMillis = 30_000", "beyondMillis = 25_000"],
    ["a leap that does not advance is never accepted", "beyondMovingMillis : beyondMillis", "beyondMovingMillis : 1e9"],
    [
      "a leap observed beside the old chain",
      "const alone = ahead.length === answers.length ? undefined",
      "const alone = ahead.length > 0 ? undefined"
    ],
    ["a leap observed twice in seconds", "const beyondPolls = 5", "const beyondPolls = 2"],
    [
      "one endpoint's first word as a proof",
      "headAt(best.newest, polled.at, best.endpoints === 1)",
      "headAt(best.newest, polled.at)"
    ],
    ["a long leap confirmed by two polls", "const leapMax = 1_000", "const leapMax = 10_000_000"],
    ["a burst on one answer's word", "&& answers > 1", ""],
    ["a first ledger on one answer's word", "!isAlone || line.answers > 1", "line.answers > 0"],
    [
      "the ledger never goes back",
      "if (movingBelow(belief, below, isStill)) return",
      "if (isStill && !isStill) return"
    ],
    ["a lower ledger that does not advance", "below.sequence > belief.below.sequence &&", ""],
    [
      "one behind takes the ledger back",
      "(isStill || below.closedAtSeconds > belief.newest.closedAtSeconds)",
      "(isStill || below.closedAtSeconds > 0)"
    ],
    [
      "a reset only after a standstill",
      "(isStill || below.closedAtSeconds > belief.newest.closedAtSeconds)",
      "isStill"
    ],
    ["a lower line only by its close times", "(isStill || below.closedAtSeconds >", "(below.closedAtSeconds >"],
    ["the higher of two endpoints is right", "continues(low, high, pace) &&", ""],
    [
      "the first competing head stays",
      "if (rival !== undefined && belief.competingHead",
      "if (rival === null && belief.competingHead"
    ]
  ]),
  ...guards("kernel/ledger/headSelection.ts", "test/kernel/ledger/headSelection.test.ts", [
    [
      "a rival that stays is followed",
      "rival.sequence > belief.competingHead.sequence",
      "competingHead.sequence >= state.competingHead.sequence"
    ],
    [
      "an endpoint far ahead is fit",
      "one.sequence <= belief.newest.sequence + reachOf(belief, at, pace)",
      "one.sequence <= Infinity + reachOf(state, at, pace)"
    ]
  ]),
  ...guards("kernel/ledger/ClockSkew.ts", "test/kernel/ledger/LedgerClock.test.ts", [
    ["one late ledger is a clock that is wrong", "Math.min(...samples)", "Math.max(...samples)"],
    ["only a clock that is ahead is wrong", "Math.abs(seconds() ?? 0)", "(seconds() ?? 0)"]
  ]),
  ...guards("kernel/stellar/bumpedTransaction.ts", "test/kernel/stellar/bumpedTransaction.test.ts", [
    ["what a fee bump signs", "uint32Bytes(kind), bytes))", "uint32Bytes(2), bytes))"],
    ["a signature cut off", "if (signature.length !== signatureBytes) throw", "if (signature.length === 0) throw"]
  ]),
  ...guards("kernel/settlement/channels/leasableChannels.ts", "test/kernel/settlement/rotation.daily.test.ts", [
    [
      "settling stops until a rotation's channels are open",
      "if (formerChannels.length === 0) return",
      "if (formerChannels.length >= 0) return"
    ]
  ]),
  ...guards("kernel/signer/ownAuthorization.ts", "test/kernel/signer/Signer.test.ts", [
    [
      "an account of ours in the call",
      "known.get(four)?.some((key) => sameBytes(",
      "known.get(four)?.some((key) => key.length === 0 && sameBytes("
    ]
  ]),
  ...guards("kernel/signer/Signer.ts", "test/kernel/signer/Signer.test.ts", [
    [
      "a settlement on any account",
      'if (!isChannelOfOurs(vault, channel)) return yield* refuse("a settlement',
      'if (channel === "") return yield* refuse("a settlement'
    ],
    [
      "a settlement from another channel",
      'if (sourceOf(transaction) !== channel) return "a settlement',
      'if (channel === "") return "a settlement'
    ],
    ["a memo", "if (hasMemo(transaction)) return", "if (hasMemo(transaction) && !hasMemo(transaction)) return"],
    [
      "no end in ledgers",
      "if (conditions === undefined || !ledgerMaxOf(transaction)) return",
      "if (conditions === undefined) return"
    ],
    ["further conditions", "return plain ? undefined :", "return plain || !plain ? undefined :"],
    [
      "two operations",
      'if (transaction.operations.length !== 1 || operation === undefined) return "a settlement with',
      'if (operation === undefined) return "a settlement with'
    ],
    [
      "an operation with a source",
      'if (operation.sourceAccount != null) return "a settlement',
      'if (operation.sourceAccount === 0 as never) return "a settlement'
    ],
    [
      "any resource fee",
      "if (resourceStroops < 0n || resourceStroops > ceilings.resourceStroopsMax) return",
      "if (resourceStroops < -9n) return"
    ],
    ["any bid", "if (inclusionStroops > ceilings.inclusionStroopsMax) return", "if (inclusionStroops < -9n) return"],
    ["resource fee and bid checked separately", "resourceStroops + inclusionStroops > stroopsMax ||", ""],
    ["a transaction's total fee is not checked", "|| BigInt(transaction.fee) > stroopsMax", ""],
    [
      "a cancellation at any price",
      "return dear === undefined ? yield* wrap(house, transaction, channel, inclusionStroops)",
      'return dear !== "never" ? yield* wrap(house, transaction, channel, inclusionStroops)'
    ],
    [
      "the channel signs for itself",
      "return authOf(operation).some(actsAsSource)",
      "return authOf(operation).length > 99"
    ],
    [
      "the sponsor's own transactions at any price",
      "if (BigInt(transaction.fee) > sponsorStroopsPerOperationMax * BigInt(transaction.operations.length))",
      "if (transaction.fee < 0)"
    ],
    ["a cancellation that does something", "if (!harmless) return", "if (harmless && !harmless) return"],
    [
      "a stranger's account is created",
      'return isOwn && isChannel(chore.account) ? undefined : "a new account',
      'return isOwn ? undefined : "a new account'
    ],
    [
      "the sponsor pays any account",
      'return isOwn && isChannel(chore.account) ? undefined : "a payment',
      'return isOwn ? undefined : "a payment'
    ],
    [
      "a channel merges into any account",
      "return isChannelOfOurs(vault, chore.account) && chore.into === vault.sponsor",
      "return isChannelOfOurs(vault, chore.account)"
    ]
  ]),
  ...guards("kernel/stellar/Envelope.ts", "test/kernel/signer/Signer.test.ts", [
    ["the sponsor pays an asset", "return asset.type === assetKind.native", "return asset.type >= assetKind.native"]
  ])
]
