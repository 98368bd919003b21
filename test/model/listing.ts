// A model of one listing between the origin, its seller, a stranger and the facilitator. The seller and the stranger
// declare, sign and pay as they like; the origin answers as its seller likes; answers of the domain are forged; probes
// are overtaken; payments take effect in separate transactions. The verdict on an origin's statement and the
// order of grades are the product's own code; the rest follows `store/Redeclarations.ts`, `store/Contenders.ts` and
// `ownership/Execution.ts`.
import { type Grade, mayDisplace } from "../../plugins/catalog/declaration/Grade.ts"
import { decideOwnership } from "../../plugins/catalog/ownership/decideOwnership.ts"
import { type Model, type Step, type Visited, visit } from "./visit.ts"

const rules = [
  "a named recipient is no evidence for words",
  "payments leave words with evidence",
  "payments replace words that an account signed at no cost",
  "a lower grade never changes a higher one",
  "an overtaken probe changes nothing",
  "the domain changes no proven listing",
  "the domain displaces no owner before the origin was asked",
  "evidence ends with the words that it was for",
  "a sale raises no quarantined listing",
  "only words without evidence end with a quarantine"
] as const
type Rule = (typeof rules)[number]

/** The seller's account and its next one, and the stranger's. */
type Account = "S" | "N" | "X"
type Author = "seller" | "stranger"
type Words = `${Author}:${Account}`
/** Without accounts the origin names none. */
interface Statement {
  readonly payTos: ReadonlyArray<Account>
  readonly words?: Words
  readonly delisted?: boolean
}

interface Listing {
  readonly payTo: Account
  readonly words: Words
  readonly grade: Grade
  readonly isProven: boolean
  readonly hasEvidence: boolean
  /** Truth: the origin served the words, or the recipient signed them with a payment. */
  readonly isBacked: boolean
  readonly state: "active" | "quarantined" | "removed"
}

interface State {
  /** Periods of thirty days. */
  readonly month: number
  readonly listing?: Listing
  /** Declared words that differ from the shown ones. */
  readonly claims: ReadonlyArray<Words>
  /** First and last month of the payments under words. */
  readonly paid: Readonly<Partial<Record<Words, readonly [first: number, last: number]>>>
  /** A sale that waits for its batch. */
  readonly sale?: { readonly words: Words; readonly isContested: boolean }
  readonly probes: ReadonlyArray<Statement>
  /** A probe was answered, and the origin named no account. */
  readonly isUnnamed: boolean
}

/** One world has probes and the domain; in the other one months pass. */
const worlds = [
  { months: 0, probes: 1 },
  { months: 1, probes: 0 }
]
/** Claims that are kept, and words that are paid under. */
const [claimsMax, paidMax] = [2, 2]
const accountOf = (words: Words): Account => words.slice(-1) as Account
const with_ = <A>(all: ReadonlyArray<A>, one: A): ReadonlyArray<A> => [...new Set([...all, one])].toSorted()
const statements: ReadonlyArray<Statement> = [
  { payTos: [] },
  { payTos: ["S"] },
  { payTos: ["S"], words: "seller:S" },
  { payTos: ["N"] },
  { payTos: [], delisted: true }
]
const declared: ReadonlyArray<Words> = ["seller:S", "stranger:S", "stranger:X", "seller:N"]
type Kind = "verified" | "settled" | "signed" | "signed and settled"
const kinds: ReadonlyArray<Kind> = ["verified", "settled", "signed", "signed and settled"]
/** Who can sign as an account. */
const ownerOf = (account: Account): Author => (account === "X" ? "stranger" : "seller")

const makeWorld = (broken: string | undefined, world: (typeof worlds)[number]) => {
  const has = (rule: Rule) => rule !== broken

  const isPaid = ({ paid }: State, words: Words) => paid[words] !== undefined

  const shown = (state: State, change: Partial<Listing>): State => ({
    ...state,
    listing: { ...state.listing!, ...change }
  })
  /** Evidence of former words ends, and payments under the new ones count. */
  const reweighed = (state: State, change: Partial<Listing>): State => {
    const { hasEvidence, words } = { ...state.listing!, ...change }
    const isKept = hasEvidence && !has("evidence ends with the words that it was for")
    return shown(state, { isBacked: false, ...change, hasEvidence: isKept || isPaid(state, words) })
  }

  const declare = (state: State, words: Words, kind: Kind): State => {
    const isSigned = kind.startsWith("signed")
    const isFree = !kind.endsWith("settled")
    const grade: Grade = isSigned ? "declared" : "claimed"
    const payTo = accountOf(words)
    const isBacked = isSigned && !isFree
    const { listing } = state
    if (listing === undefined) {
      const own = { payTo, words, grade, isProven: false, hasEvidence: isBacked, isBacked, state: "active" as const }
      return sold({ ...state, listing: own }, words, isFree)
    }
    const isOfAnother = listing.payTo !== payTo
    const isOpen =
      listing.grade === "claimed"
        ? isOfAnother || grade === "claimed"
        : isOfAnother && grade === "declared" && !listing.hasEvidence
    const claims = with_(state.claims, words)
    const kept = (isOpen || isOfAnother) && claims.length <= claimsMax ? { ...state, claims } : state
    const contended = isOpen ? sold(kept, words, isFree, true) : kept
    if (isOfAnother) return contended
    const isChanged = listing.words !== words
    const isFirst =
      listing.state === "quarantined" &&
      !(listing.hasEvidence && has("only words without evidence end with a quarantine"))
    const mayReplace = mayDisplace(grade, listing.grade) || !has("a lower grade never changes a higher one")
    if (isChanged && !isFirst && !mayReplace) return shown(contended, { state: "active" })
    // The recipient's own signature carries the listing's evidence on.
    const isCarried = isChanged ? isSigned && listing.hasEvidence && !isFirst : listing.isBacked
    const to = shown(state, {
      words,
      grade: isChanged || mayReplace ? grade : listing.grade,
      state: "active",
      hasEvidence: listing.hasEvidence || isBacked,
      isBacked: isBacked || isCarried
    })
    return sold(to, words, isFree)
  }

  /** A payment under words that are shown or contend. */
  const sold = (state: State, words: Words, isFree: boolean, isContested = false): State =>
    isFree ? state : { ...state, sale: { words, isContested } }

  const maySell = ({ paid, sale }: State, words: Words): boolean =>
    sale === undefined && (words in paid || Object.keys(paid).length < paidMax)

  /** The batch stores the sale, which is evidence for shown words. */
  const store = ({ sale, ...state }: State): State => {
    if (sale === undefined || state.listing === undefined) return state
    const { isContested, words } = sale
    const [first] = state.paid[words] ?? [state.month]
    const paid = { ...state, paid: { ...state.paid, [words]: [first, state.month] as const } }
    const isRaised =
      !isContested &&
      state.listing.words === words &&
      (state.listing.state !== "quarantined" || !has("a sale raises no quarantined listing"))
    return isRaised ? shown(paid, { hasEvidence: true }) : paid
  }

  /** The contender that replaces the shown words. */
  const winnerOf = ({ claims, listing, month, paid }: State): Words | undefined => {
    if (listing === undefined || listing.state !== "active") return undefined
    const isFreelySigned = !listing.hasEvidence && has("payments replace words that an account signed at no cost")
    if (listing.grade !== "claimed" && !isFreelySigned) return undefined
    const isRecent = (words: Words) => (paid[words]?.[1] ?? -1) >= month
    if (isRecent(listing.words) && has("payments leave words with evidence")) return undefined
    return claims.find((words) => {
      if (words === listing.words || !isRecent(words)) return false
      if (listing.isProven && accountOf(words) !== listing.payTo) return false
      if (listing.grade !== "claimed" && accountOf(words) === listing.payTo) return false
      const isOld = paid[words]![0] < month
      return !listing.hasEvidence || isOld || !has("payments leave words with evidence")
    })
  }

  /** The origin's statement as the product carries it out. */
  const apply = (state: State, { delisted = false, payTos, words }: Statement): State => {
    const { listing } = state
    if (listing === undefined) return state
    const verdict = decideOwnership(
      {
        state: listing.state,
        reason: null,
        ownership: listing.isProven ? "proven" : "provisional",
        payTos: [listing.payTo],
        claimants: state.claims.map(accountOf)
      },
      { payTos, delisted }
    )
    const served = words === undefined ? {} : { words, grade: "origin" as const, hasEvidence: true, isBacked: true }
    const isRotated = listing.isProven && listing.hasEvidence
    switch (verdict._tag) {
      case "Nothing":
        return words === undefined || listing.state === "removed" ? state : shown(state, served)
      case "Removed":
        return shown(state, { state: "removed" })
      case "Proven": {
        const evidence = has("a named recipient is no evidence for words") ? {} : { hasEvidence: true }
        return shown(state, { isProven: true, ...evidence, ...served })
      }
      case "Displaced":
      case "Contradicted": {
        const payTo = (verdict._tag === "Displaced" ? verdict.by : verdict.payTos[0]) as Account
        const owned = { payTo, isProven: true, state: "active" as const }
        if (words !== undefined) return shown(state, { ...owned, ...served })
        if (isRotated && listing.state === "active") {
          const renamed: Words = `${listing.words.split(":")[0] as Author}:${payTo}`
          return shown(state, { ...owned, words: renamed, isBacked: true })
        }
        if (verdict._tag === "Contradicted")
          return shown(state, {
            ...owned,
            state: "quarantined",
            isBacked: false,
            hasEvidence: listing.hasEvidence && !has("evidence ends with the words that it was for")
          })
        const claim = state.claims.find((one) => accountOf(one) === payTo)!
        return reweighed(state, { ...owned, words: claim, grade: "claimed" })
      }
    }
  }

  /** Why a change of the listing is wrong. `by`: the cause, and whether it may change words with evidence. */
  const changeIssue = (before: State, after: State, by: { origin?: boolean; signer?: Author }): string | undefined => {
    const [from, to] = [before.listing, after.listing]
    if (from === undefined || to === undefined || by.origin === true) return undefined
    const isMoved = from.payTo !== to.payTo
    const isByRecipient = by.signer !== undefined && by.signer === ownerOf(from.payTo)
    if (from.isProven && isMoved && !isByRecipient) return "a proven recipient changed without the origin"
    if (!from.hasEvidence || (from.words === to.words && !isMoved) || isByRecipient) return undefined
    if (from.state !== "active") return undefined
    const isForgotten = (before.paid[from.words]?.[1] ?? -1) < before.month && from.grade === "claimed"
    const isOlder = (before.paid[to.words]?.[0] ?? before.month) < before.month
    return isForgotten && isOlder ? undefined : "words with evidence changed without the origin or the recipient"
  }

  const declarations = function* (state: State): Iterable<Step<State>> {
    for (const words of declared)
      for (const kind of kinds) {
        const isSigned = kind.startsWith("signed")
        const signer = ownerOf(accountOf(words))
        // The stranger cannot sign as the seller, and the seller signs for its next account.
        if (isSigned ? words.split(":")[0] !== signer : accountOf(words) === "N") continue
        if (kind.endsWith("settled") && !maySell(state, words)) continue
        const to = declare(state, words, kind)
        const broken = changeIssue(state, to, isSigned ? { signer } : {})
        yield { did: `${words} by a payment that is ${kind}`, to, broken }
      }
  }

  const stepsOf = function* (state: State): Iterable<Step<State>> {
    if (state.listing?.state === "removed") return
    yield* declarations(state)
    if (state.sale !== undefined) yield { did: "the sale is stored", to: store(state) }
    const winner = winnerOf(state)
    if (winner !== undefined) {
      const words = { words: winner, payTo: accountOf(winner), grade: "claimed" as const }
      const to = reweighed(state, words)
      yield { did: `${winner} replaces the shown words`, to, broken: changeIssue(state, to, {}) }
    }
    // An answer that the fence refuses is left out.
    if (
      state.probes.length < (has("an overtaken probe changes nothing") ? world.probes : 2) &&
      state.listing !== undefined
    )
      for (const statement of statements) {
        const { delisted, payTos, words } = statement
        yield {
          did: `the origin names ${payTos} ${words ?? ""}${delisted === true ? ", delists" : ""}`,
          to: { ...state, probes: [...state.probes, statement] }
        }
      }
    for (const [at, statement] of state.probes.entries()) {
      const isNewest = at === state.probes.length - 1
      const rest = { ...state, probes: isNewest ? [] : state.probes.toSpliced(at, 1) }
      const isTaken = isNewest || !has("an overtaken probe changes nothing")
      const isUnnamed = isNewest ? statement.payTos.length === 0 : state.isUnnamed
      const to = isTaken ? { ...apply(rest, statement), isUnnamed } : rest
      const payTo = to.listing!.payTo
      const isContrary = isNewest && statement.payTos.length > 0 && !statement.payTos.includes(payTo)
      yield {
        did: `the probe ${at} is applied`,
        to,
        broken:
          isContrary && to.listing!.state === "active"
            ? "the listing pays another account than the origin names"
            : changeIssue(state, to, { origin: isNewest })
      }
    }
    if (world.probes > 0) for (const account of ["S", "X"] as const) yield* domainSteps(state, account)
    if (state.month < world.months) yield { did: "thirty days pass", to: { ...state, month: state.month + 1 } }
  }

  /** The domain's records, which may be forged. */
  const domainSteps = function* (state: State, account: Account): Iterable<Step<State>> {
    const { isUnnamed, listing } = state
    if (listing === undefined) return
    if (listing.isProven && has("the domain changes no proven listing")) return
    const isClaimed = state.claims.some((one) => accountOf(one) === account)
    const isAllowed = isUnnamed || !has("the domain displaces no owner before the origin was asked")
    if (listing.payTo !== account && !(isClaimed && isAllowed)) return
    const to = apply(state, { payTos: [account] })
    const isMoved = to.listing!.payTo !== listing.payTo
    yield {
      did: `the domain names ${account}`,
      to,
      broken:
        isMoved && listing.isProven
          ? "a proven recipient changed by the domain"
          : isMoved && !isUnnamed
            ? "the domain displaced an owner, and the origin was not asked"
            : undefined
    }
  }

  const issueOf = (state: State): string | undefined => {
    const { claims, listing, month, paid } = state
    if (listing === undefined) return undefined
    if (listing.hasEvidence && listing.state === "active" && !listing.isBacked && !isPaid(state, listing.words))
      return `${listing.words} has evidence that is for other words`
    if (listing.state === "active" && accountOf(listing.words) !== listing.payTo)
      return `${listing.words} pays another account than ${listing.payTo}`
    const isFree =
      !listing.hasEvidence && !isPaid(state, listing.words) && !listing.isProven && listing.state === "active"
    const rival = claims.find((words) => words !== listing.words && (paid[words]?.[1] ?? -1) >= month)
    if (isFree && rival !== undefined && accountOf(rival) !== listing.payTo && winnerOf(state) === undefined)
      return `${listing.words} cost nothing, and ${rival} was paid for`
    return undefined
  }

  return { stepsOf, issueOf }
}

const start: State = { month: 0, claims: [], paid: {}, probes: [], isUnnamed: false }

const explore = (broken?: string): Visited => {
  const visited = worlds.map((world) => {
    const { issueOf, stepsOf } = makeWorld(broken, world)
    return visit(start, stepsOf, issueOf)
  })
  return { states: visited[0]!.states + visited[1]!.states, broken: visited[0]!.broken ?? visited[1]!.broken }
}

export const listing: Model = { name: "a listing between origin, stranger and facilitator", rules, explore }

/** The listing after each step of a history, with all rules; undefined for a step that the rules do not allow. */
export const replayListing = (history: ReadonlyArray<string>): ReadonlyArray<Listing | undefined> => {
  const { stepsOf } = makeWorld(undefined, { months: 1, probes: 2 })
  const step = (state: State, isOne: (did: string) => boolean) => [...stepsOf(state)].find(({ did }) => isOne(did))?.to
  let state = start
  return history.map((did) => {
    const next = step(state, (one) => one === did)
    if (next === undefined) return undefined
    // The product weighs contending claims when it stores a sale.
    state = (did === "the sale is stored" && step(next, (one) => one.endsWith("replaces the shown words"))) || next
    return state.listing
  })
}
