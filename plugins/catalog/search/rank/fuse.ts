// Reciprocal-rank fusion: a hit is worth weight / (k + rank) in each branch that found it, rank from 1. Ranks and not
// scores are fused, because the scores of two branches have nothing in common. The semantic branch counts as much as
// the lexical one leaves open. Some listing is always the nearest. If both branches are asked, an answer must exceed,
// by both together, the expected score of a chance nearest listing; if only the semantic branch is asked, it must not
// fall far short of that. If no hit does, or no branch is confident, the answer consists of the listings that hold a
// rare term of the query, and otherwise of the nearest three: lexical scores cannot separate unanswerable queries from
// paraphrases. The ranks of weak hits carry little information: if the lexical branch is not confident, relevances
// order the hits. Ties go to the listing that was listed first: being new is not a merit. Pure.
import type { Hit, SearchBranch } from "../../contract.ts"

export interface Ranked {
  readonly mode: SearchBranch["mode"]
  readonly weight: number
  /** Best first. */
  readonly hits: ReadonlyArray<Hit>
}

interface FuseOptions {
  readonly k: number
  /** Hits below this share of their branch's best hit, in every branch that found them, are left out. */
  readonly relevanceMin: number
  /** A branch with a less relevant best hit counts as having found nothing. */
  readonly bestMin: number
  /**
   * The relevance of each branch's best hit without the caller's filters, if known. Default: the relevance of its best
   * hit here.
   */
  readonly bests?: ReadonlyMap<SearchBranch["mode"], number>
  /** Whether anything fits the query without the caller's filters, if known. Default: whether it does here. */
  readonly isFitting?: boolean
}

export const bestsOf = (branches: ReadonlyArray<Ranked>): ReadonlyMap<SearchBranch["mode"], number> =>
  new Map(branches.map(({ hits, mode }) => [mode, Math.max(0, ...hits.map(({ relevance }) => relevance))]))

/** Whether a single branch's best hit is relevant enough. */
export const hasConfidentBranch = (bests: ReadonlyMap<SearchBranch["mode"], number>, bestMin: number): boolean =>
  [...bests.values()].some((best) => best >= bestMin)

/** Deviations of similarity that a lexical relevance of 1 is worth. */
const wordsWorth = 30
/** Standard deviations that both branches together must exceed chance by. */
const fittingMin = 0.45
/** Standard deviations for a share of the query's terms, independent of the rest: the first share is worth most. */
const evidenceWorth = 2
const evidenceScale = 4
/** Standard deviations that held terms and the semantic branch together must exceed chance by. */
const enoughMin = 0.2
/** A lexical relevance that needs no other witness. */
const wordsAloneMin = 0.25
/** Deviations from chance (more often negative than not) for the embedded branch when it is the only one asked. */
const meansAloneMin = -0.5

/**
 * The deviations beyond chance that both branches together give a hit, if its terms are worth this many. Undefined
 * unless the lexical branch is asked together with a semantic one that can measure chance. A hit outside of the nearest
 * counts as the last of them.
 */
const speakingFor = (
  branches: ReadonlyArray<Ranked>,
  worthOf: (hit: Hit) => number
): ((id: bigint) => number) | undefined => {
  const words = branches.find(({ mode }) => mode === "lexical")
  const means = branches.find(({ mode }) => mode === "embedded")
  const prominence = new Map<bigint, number>()
  for (const hit of means?.hits ?? []) if (hit.prominence !== undefined) prominence.set(hit.id, hit.prominence)
  if (words === undefined || prominence.size === 0) return undefined
  const worth = new Map(words.hits.map((hit) => [hit.id, worthOf(hit)]))
  const least = Math.min(...prominence.values())
  return (id) => (worth.get(id) ?? 0) + (prominence.get(id) ?? least)
}

/** By the share of the query that the hit answers. */
const fitnessOf = (branches: ReadonlyArray<Ranked>) => speakingFor(branches, ({ relevance }) => wordsWorth * relevance)

/**
 * Weight by the share of the query that the hit holds, at any length: a share of three terms carries less information
 * than the same share of ten.
 */
const weightOfEvidence = (branches: ReadonlyArray<Ranked>) =>
  speakingFor(branches, ({ evidence = Infinity }) => evidenceWorth * Math.log1p(evidenceScale * evidence))

/**
 * Whether the nearest hit of the embedded branch, asked without the others, exceeds the most frequent nearest hit by
 * chance.
 */
const isAnyProminent = (branches: ReadonlyArray<Ranked>): boolean => {
  const known = branches.flatMap(({ hits }) => hits.flatMap(({ prominence }) => prominence ?? []))
  const isAlone = branches.length === 1 && branches[0]!.mode === "embedded"
  return !isAlone || known.length === 0 || Math.max(...known) >= meansAloneMin
}

/** Weights of the statistic below and the threshold of an answer: fitted to the labeled sets. */
const statistic = {
  relevance: 2.867,
  together: 0.253,
  agreement: 1.242,
  word: 0.562,
  covered: 1.726,
  supported: 2.645,
  least: 3.89
}
/** Further terms of a query beyond this number carry no information. */
const wordsMax = 12

const unspacedRun = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー\p{Script=Hangul}]+/gu

/** Terms of a query; a pair of characters of a script without blanks counts as one. */
export const countWords = (query: string): number => {
  const runs = query.match(unspacedRun) ?? []
  const words = query.replace(unspacedRun, " ").match(/[\p{L}\p{N}_]+/gu) ?? []
  return words.length + runs.reduce((sum, run) => sum + Math.ceil([...run].length / 2), 0)
}

/**
 * The distance of the query's best hits from those of unanswerable queries. It combines lexical relevance, which drops
 * with the query's length, the share of the query that a hit holds together with its deviation, whether both branches
 * rank the same hit first, and the share of the query that any listing holds or has similar words for: an unanswerable
 * query mostly has a word that the catalog lacks. Undefined unless the lexical branch is asked together with a semantic
 * one that can measure chance.
 */
const answerability = (branches: ReadonlyArray<Ranked>, words: number): number | undefined => {
  const evidence = weightOfEvidence(branches)
  if (evidence === undefined) return undefined
  const firsts = branches.map(({ hits }) => hits[0]?.id)
  const best = bestsOf(branches).get("lexical") ?? 0
  const { covered = 0, supported = 0 } = branches.find(({ mode }) => mode === "lexical")?.hits[0] ?? {}
  const together = Math.max(...branches.flatMap(({ hits }) => hits.map(({ id }) => evidence(id))))
  return (
    statistic.relevance * best +
    statistic.together * together +
    statistic.agreement * Number(firsts.every((id) => id !== undefined && id === firsts[0])) +
    statistic.word * Math.min(wordsMax, words) +
    statistic.covered * covered +
    statistic.supported * supported -
    statistic.least
  )
}

/**
 * Whether any hit exceeds chance: by a rare term of the query, by lexical relevance, by an operator's model, or by both
 * branches together if the hit holds enough of the query's terms. With the query's number of terms, the statistic above
 * decides instead, unless a model was asked.
 */
export const isAnyFitting = (
  branches: ReadonlyArray<Ranked>,
  bests: ReadonlyMap<SearchBranch["mode"], number>,
  bestMin: number,
  words?: number
): boolean => {
  const beyond = words === undefined || bests.has("semantic") ? undefined : answerability(branches, words)
  if (beyond !== undefined) return beyond >= 0
  const [fitness, evidence] = [fitnessOf(branches), weightOfEvidence(branches)]
  if (fitness === undefined || evidence === undefined) return isAnyProminent(branches)
  // If no best hit is too low, a model's best hit is not too low either: everything fits.
  if ((bests.get("semantic") ?? 0) >= bestMin || (bests.get("lexical") ?? 0) >= wordsAloneMin) return true
  const isAny = (is: (hit: Hit) => boolean) => branches.some(({ hits }) => hits.some(is))
  return (
    isAny(({ isEvident }) => isEvident === true) ||
    (isAny(({ id }) => fitness(id) >= fittingMin) && isAny(({ id }) => evidence(id) >= enoughMin))
  )
}

/** This lexical relevance, and any semantic one, are two witnesses for a hit if chance is not known. */
const witnessMin = 0.06

/** The rank of a hit in one branch, from 1. */
interface BranchRank {
  readonly rank: number
  readonly score: number
  readonly relevance: number
  /** The share of the query's own terms that it holds, from branches that know it. */
  readonly held?: number
}

export interface Fused {
  readonly id: bigint
  readonly score: number
  readonly ranks: Readonly<Partial<Record<SearchBranch["mode"], BranchRank>>>
  /** Its score by its ranks among only the hits with evidence, if claims flood the branches. */
  readonly scoreAmongEvidence?: number
}

/** Higher first; ties go to the listing that was listed first. */
export const byScore = (
  a: { readonly id: bigint; readonly score: number },
  b: { readonly id: bigint; readonly score: number }
): number => b.score - a.score || (a.id < b.id ? -1 : 1)

/** The semantic branch counts in full if the best lexical hit has at most this share of its relevance. */
const surenessShare = 0.4

/**
 * The weight of a branch's ranks. The semantic branch only finds the query's topic: it counts in full if the query's
 * terms find little, and less the more confident the lexical branch is.
 */
const weightOf = (
  { mode, weight }: Pick<Ranked, "mode" | "weight">,
  bests: ReadonlyMap<SearchBranch["mode"], number>
): number => {
  const [words, means] = [bests.get("lexical") ?? 0, bests.get("embedded") ?? 0]
  return mode !== "embedded" || words === 0 ? weight : weight * Math.min(1, (surenessShare * means) / words)
}

/**
 * For queries without a confident branch: the hits with a rare term or two witnesses, and otherwise the hits that
 * exceed chance.
 */
const witnessedOf = (
  all: ReadonlyArray<Fused>,
  evident: ReadonlySet<bigint>,
  fitness: ReturnType<typeof fitnessOf>
): ReadonlyArray<Fused> => {
  const isFit = ({ id }: Fused): boolean => fitness === undefined || fitness(id) >= fittingMin
  const isWitnessed = ({ id, ranks }: Fused): boolean =>
    evident.has(id) || ((ranks.lexical?.relevance ?? 0) >= witnessMin && (ranks.embedded?.relevance ?? 0) > 0)
  const witnessed = all.filter((hit) => isWitnessed(hit) && (evident.has(hit.id) || isFit(hit)))
  return witnessed.length > 0 || fitness === undefined ? witnessed : all.filter(isFit)
}

/**
 * Orders hits by both relevances together and drops those with a small share of the best. If the lexical branch is not
 * confident, its first hit is hardly better than its second and holds a rare term as likely by chance, so its ranks and
 * the test for an answer would hide the semantic branch's clear results.
 */
const inOrderOfRelevance = (hits: ReadonlyArray<Fused>, relevanceMin: number): ReadonlyArray<Fused> => {
  const relevanceOf = ({ ranks }: Fused) => (ranks.lexical?.relevance ?? 0) + (ranks.embedded?.relevance ?? 0)
  const all = hits.map((hit) => ({ ...hit, score: relevanceOf(hit) })).sort(byScore)
  return all.filter(({ score }) => score >= relevanceMin * all[0]!.score)
}

/** If nothing exceeds chance, only this many of the nearest are shown. */
const nearestMax = 3

/** Best first. */
export const fuse = (
  branches: ReadonlyArray<Ranked>,
  {
    bestMin,
    bests = bestsOf(branches),
    isFitting = isAnyFitting(branches, bests, bestMin),
    k,
    relevanceMin
  }: FuseOptions
): ReadonlyArray<Fused> => {
  /** The relevance that a hit of a branch must have. */
  const cuts = new Map([...bests].map(([mode, best]) => [mode, best < bestMin ? Infinity : relevanceMin * best]))
  const fused = new Map<
    bigint,
    { readonly id: bigint; score: number; readonly ranks: Partial<Record<SearchBranch["mode"], BranchRank>> }
  >()
  const evident = new Set<bigint>()
  for (const { hits, mode, weight: most } of branches) {
    const weight = weightOf({ mode, weight: most }, bests)
    let rank = 0
    hits.forEach(({ held, id, isAside, isEvident, relevance, score }, index) => {
      if (isAside === true) return
      // Equal scores share a rank, so the arbitrary order within a branch does not separate them.
      if (index === 0 || hits[index - 1]!.score !== score) rank = index + 1
      let entry = fused.get(id)
      if (entry === undefined) fused.set(id, (entry = { id, score: 0, ranks: {} }))
      entry.score += weight / (k + rank)
      entry.ranks[mode] = { rank, score, relevance, ...(held === undefined ? {} : { held }) }
      if (isEvident === true) evident.add(id)
    })
  }
  const isRelevant = ({ ranks }: Pick<Fused, "ranks">): boolean =>
    branches.some(({ mode }) => (ranks[mode]?.relevance ?? -1) >= (cuts.get(mode) ?? Infinity))
  const all = [...fused.values()].sort(byScore)
  // An operator's model decides whether there is an answer, and its relevances do not compare with those of branches.
  const isModelAsked = branches.some(({ mode }) => mode === "semantic")
  if (!isFitting) return isModelAsked ? [] : inOrderOfRelevance(all, relevanceMin).slice(0, nearestMax)
  const isOrderReported = (bests.get("lexical") ?? 0) >= bestMin || isModelAsked
  const isSure = hasConfidentBranch(bests, bestMin)
  if (isSure && isOrderReported) return all.filter(isRelevant)
  const fitness = fitnessOf(branches)
  const shown = isSure ? all.filter(isRelevant) : witnessedOf(all, evident, fitness)
  const isByRelevance = fitness !== undefined && !isOrderReported && shown.length > 0
  return isByRelevance ? inOrderOfRelevance(all, relevanceMin) : shown
}

/** Adds to each hit with evidence its score among only such hits: claims take no rank from them. */
export const scoredAmong = (
  hits: ReadonlyArray<Fused>,
  branches: ReadonlyArray<Ranked>,
  evidenced: ReadonlySet<bigint>,
  k: number
): ReadonlyArray<Fused> => {
  if (evidenced.size === 0) return hits
  const among = branches.map((branch) => ({ ...branch, hits: branch.hits.filter(({ id }) => evidenced.has(id)) }))
  const scores = new Map(
    fuse(among, { k, relevanceMin: 0, bestMin: 0, isFitting: true }).map(({ id, score }) => [id, score])
  )
  return hits.map((hit) => {
    const score = scores.get(hit.id)
    return score === undefined ? hit : { ...hit, scoreAmongEvidence: score }
  })
}
