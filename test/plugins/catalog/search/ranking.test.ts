// Fusion, the resources' own signals, and the cursor that carries a ranking: pure.
import { Option } from "effect"
import { describe, expect, it } from "vitest"
import type { Hit } from "../../../../plugins/catalog/contract.ts"
import {
  countWords,
  fuse,
  isAnyFitting,
  type Ranked,
  scoredAmong
} from "../../../../plugins/catalog/search/rank/fuse.ts"
import { decodePosition, encodePosition } from "../../../../plugins/catalog/search/rank/rankingCursor.ts"
import { randomFrom } from "../../analytics/recount.ts"
import { spreadSellers } from "../../../../plugins/catalog/search/rank/spreadSellers.ts"
import { areAlike, groupAlike, hashedWords, sketchOf } from "../../../../plugins/catalog/search/rank/textSketch.ts"
import { type Signals, weigh } from "../../../../plugins/catalog/search/rank/signals.ts"

const hits = (...ids: ReadonlyArray<number>): ReadonlyArray<Hit> =>
  ids.map((id, at) => ({ id: BigInt(id), score: 1 / (at + 1), relevance: 0.5 }))
const ids = (list: ReadonlyArray<{ readonly id: bigint }>) => list.map(({ id }) => Number(id))

describe("the answer threshold for a query of a known number of words", () => {
  const asked = (relevance: number, words: number, mode: "embedded" | "semantic" = "embedded") => {
    const likely = { id: 1n, score: relevance, relevance, evidence: relevance }
    const branches: ReadonlyArray<Ranked> = [
      { mode: "lexical", weight: 1, hits: [likely, { ...likely, id: 2n, score: 0, relevance: 0, evidence: 0 }] },
      { mode, weight: 1, hits: [{ id: 1n, score: 0.5, relevance: 0.5, prominence: 0 }] }
    ]
    return isAnyFitting(
      branches,
      new Map([
        ["lexical", relevance],
        [mode, 0.5]
      ]),
      0.15,
      words
    )
  }

  it("the answer threshold depends on relevance, lower for longer queries", () => {
    expect(asked(0.5, 2)).toBe(true)
    expect(asked(0.1, 2)).toBe(false)
    expect(asked(0.1, 6)).toBe(true)
  })

  it("a query whose words the catalog lacks needs more", () => {
    const ofCovered = (covered: number) => {
      const lexical = { id: 1n, score: 0.2, relevance: 0.2, evidence: 0.2, covered, supported: covered }
      const branches: ReadonlyArray<Ranked> = [
        { mode: "lexical", weight: 1, hits: [lexical] },
        { mode: "embedded", weight: 1, hits: [{ id: 2n, score: 0.5, relevance: 0.5, prominence: 0 }] }
      ]
      const bests = new Map(branches.map(({ hits, mode }) => [mode, hits[0]!.relevance]))
      return isAnyFitting(branches, bests, 0.15, 4)
    }
    expect([ofCovered(0.1), ofCovered(0.9)]).toEqual([false, true])
  })

  it("an operator's model decides alone whether a query has an answer", () => {
    expect(asked(0.1, 2, "semantic")).toBe(true)
    // Also together with the built-in vectors, which measure chance and would reject.
    const branch = (mode: Ranked["mode"], relevance: number): Ranked => ({
      mode,
      weight: 1,
      hits: [{ id: 1n, score: relevance, relevance, evidence: relevance, prominence: 0 }]
    })
    const branches = [branch("lexical", 0.1), branch("embedded", 0.1)]
    const model = branch("semantic", 0.5)
    const fits = (all: ReadonlyArray<Ranked>) =>
      isAnyFitting(all, new Map(all.map(({ hits, mode }) => [mode, hits[0]!.relevance])), 0.15, 2)
    expect([fits(branches), fits([...branches, model])]).toEqual([false, true])
  })

  it("a pair of characters counts as one word of the query", () => {
    expect(countWords("find me a song")).toBe(4)
    expect(countWords("今夜見える星")).toBe(3)
    expect(countWords("GPS の位置")).toBe(3)
  })
})

describe("fusion", () => {
  const branches = [
    { mode: "lexical", weight: 0.2, hits: hits(1, 2) },
    { mode: "semantic", weight: 0.8, hits: hits(3, 2) }
  ] as const

  it("fusion adds weight / (k + rank) per branch and reports the ranks [S130]", () => {
    const fused = fuse(branches, { k: 10, relevanceMin: 0, bestMin: 0 })
    expect(ids(fused)).toEqual([2, 3, 1])
    expect(fused[0]!.score).toBeCloseTo(0.2 / 12 + 0.8 / 12, 12)
    expect(fused[0]!.ranks).toEqual({
      lexical: { rank: 2, score: 0.5, relevance: 0.5 },
      semantic: { rank: 2, score: 0.5, relevance: 0.5 }
    })
  })

  it("a rank keeps the share of the query that its branch found", () => {
    const found = [{ id: 1n, score: 1, relevance: 0.5, held: 0.4 }, ...hits(2)]
    const [first, second] = fuse([{ mode: "lexical", weight: 1, hits: found }], { k: 10, relevanceMin: 0, bestMin: 0 })
    expect([first!.ranks.lexical!.held, "held" in second!.ranks.lexical!]).toEqual([0.4, false])
  })

  it("hits without a known seller keep their places", () => {
    const given = hits(...Array.from({ length: 30 }, (_, at) => at + 1)).map((hit) => ({ ...hit, ranks: {} }))
    expect(ids(spreadSellers(given, () => undefined).hits)).toEqual(ids(given))
  })

  it("hits with evidence are scored among themselves too, as if no claim were before them", () => {
    const fused = fuse(branches, { k: 10, relevanceMin: 0, bestMin: 0 })
    const scored = scoredAmong(fused, branches, new Set([2n]), 10)
    expect(scored.map(({ scoreAmongEvidence }) => scoreAmongEvidence)).toEqual([
      0.2 / 11 + 0.8 / 11,
      undefined,
      undefined
    ])
    expect(scored.map(({ score }) => score)).toEqual(fused.map(({ score }) => score))
    expect(scoredAmong(fused, branches, new Set(), 10)).toBe(fused)
  })

  it("fusion drops hits that no branch finds relevant", () => {
    const weak = (id: number): Hit => ({ id: BigInt(id), score: 1, relevance: 0.01 })
    expect(
      ids(
        fuse(
          [
            { mode: "lexical", weight: 1, hits: [weak(1), weak(2)] },
            { mode: "semantic", weight: 1, hits: hits(2) }
          ],
          { k: 10, relevanceMin: 0.05, bestMin: 0.05 }
        )
      )
    ).toEqual([2])
  })

  const hit = (id: number, relevance: number): Hit => ({ id: BigInt(id), score: relevance, relevance })

  it("a weak hit is measured against its branch's best hit", () => {
    const found = (...hits: ReadonlyArray<Hit>) =>
      ids(fuse([{ mode: "lexical", weight: 1, hits }], { k: 10, relevanceMin: 0.2, bestMin: 0.3 }))
    expect(found(hit(1, 0.5), hit(2, 0.11), hit(3, 0.09))).toEqual([1, 2])
    expect(found(hit(1, 0.29), hit(2, 0.28))).toEqual([])
    expect(found(hit(1, 0.31), hit(2, 0.07))).toEqual([1, 2])
  })

  it("without a confident branch, rare words or agreement keep a hit", () => {
    const found = (best: number) =>
      ids(
        fuse(
          [
            {
              mode: "lexical",
              weight: 1,
              hits: [hit(1, best), { ...hit(2, 0.05), isEvident: true }, hit(3, 0.05), hit(4, 0.07), hit(5, 0.07)]
            },
            { mode: "embedded", weight: 1, hits: [hit(3, 0.1), hit(4, 0.1), hit(6, 0.1)] }
          ],
          { k: 10, relevanceMin: 0.9, bestMin: 0.15 }
        )
      ).toSorted((a, b) => a - b)
    expect(found(0.1)).toEqual([2, 4])
    expect(found(0.2)).toEqual([1])
  })

  const prominent = (id: number, relevance: number, prominence: number): Hit => ({ ...hit(id, relevance), prominence })

  /** Three more without any of the words: if nothing exceeds chance, at most three are shown. */
  const more = [21, 22, 23].map((id): Hit => ({ ...hit(id, 0), evidence: 0 }))
  const isAnswered = (words: ReadonlyArray<Hit>, means: ReadonlyArray<Hit>, bestMin = 0.15): boolean =>
    fuse(
      [
        { mode: "lexical", weight: 1, hits: [...words, ...more] },
        { mode: "embedded", weight: 1, hits: means }
      ],
      { k: 10, relevanceMin: 0, bestMin }
    ).length > 3

  it("a question whose nearest hit is within chance has no answer", () => {
    // Only by similarity: first within the nearest hit's chance level, then far beyond it.
    expect(isAnswered([], [prominent(1, 0.4, -0.2), prominent(2, 0.3, -0.9)])).toBe(false)
    expect(isAnswered([], [prominent(1, 0.4, 0.5), prominent(2, 0.3, -0.9)])).toBe(true)
    // Words and similarity that point at different listings, and at the same one.
    expect(isAnswered([hit(3, 0.12)], [prominent(1, 0.4, -0.2), prominent(3, 0.1, -4)])).toBe(false)
    expect(isAnswered([hit(1, 0.12)], [prominent(1, 0.4, -0.2), prominent(3, 0.1, -4)])).toBe(true)
    // A hit outside the nearest list is assumed as similar as the last of that list, and no more.
    expect(isAnswered([hit(9, 0.16)], [prominent(1, 0.1, -1), prominent(2, 0.1, -5)])).toBe(false)
    expect(isAnswered([hit(9, 0.24)], [prominent(1, 0.1, -1), prominent(2, 0.1, -5)])).toBe(true)
    // Lexical hits that are confident by themselves, and a search that keeps all hits.
    expect(isAnswered([hit(9, 0.26)], [prominent(1, 0.1, -1), prominent(2, 0.1, -9)])).toBe(true)
    expect(isAnswered([], [prominent(1, 0.4, -0.2)], 0)).toBe(true)
  })

  it("many weak signals do not answer a short question", () => {
    const held = (id: number, relevance: number, evidence: number): Hit => ({ ...hit(id, relevance), evidence })
    const means = [prominent(1, 0.4, -0.9), prominent(3, 0.1, -1.6)]
    // A fifth of two words, and of three; the same by similarity.
    expect(isAnswered([held(1, 0.2, 0.18)], means)).toBe(false)
    expect(isAnswered([held(1, 0.2, 0.19)], means)).toBe(true)
    // The least similar hit must contain more of the words; a lexically confident one needs no evidence.
    expect(isAnswered([held(9, 0.2, 0.36)], means)).toBe(false)
    expect(isAnswered([held(9, 0.2, 0.37)], means)).toBe(true)
    expect(isAnswered([held(1, 0.26, 0.1)], means)).toBe(true)
    expect(isAnswered([{ ...held(1, 0.2, 0.1), isEvident: true }], means)).toBe(true)
  })

  it("an unanswered query shows the nearest three unless a model was asked", () => {
    const found = (more: ReadonlyArray<Hit> = [], relevanceMin = 0.1) =>
      ids(
        fuse(
          [
            { mode: "lexical", weight: 1, hits: [hit(1, 0.1), hit(2, 0.08), hit(3, 0.02)] },
            { mode: "embedded", weight: 1, hits: [prominent(4, 0.14, -3), prominent(2, 0.05, -4)] },
            ...(more.length === 0 ? [] : [{ mode: "semantic", weight: 1, hits: more } as const])
          ],
          { k: 10, relevanceMin, bestMin: 0.15 }
        )
      )
    expect(found()).toEqual([4, 2, 1])
    expect(found([], 0.95)).toEqual([4])
    expect(found([hit(4, 0.1)])).toEqual([])
  })

  it("with an uncertain model, hits beyond chance stay, agreed ones first", () => {
    const found = (words: ReadonlyArray<Hit>) =>
      ids(
        fuse(
          [
            { mode: "lexical", weight: 1, hits: words },
            { mode: "embedded", weight: 1, hits: [prominent(1, 0.1, -1), prominent(2, 0.1, -4)] },
            { mode: "semantic", weight: 1, hits: [hit(7, 0.01)] }
          ],
          { k: 10, relevanceMin: 0.2, bestMin: 0.15 }
        )
      )
    expect(found([hit(1, 0.1), hit(2, 0.1)])).toEqual([1])
    expect(found([hit(3, 0.14), hit(1, 0.04)])).toEqual([])
    expect(found([hit(1, 0.055), hit(3, 0.05)])).toEqual([1])
    // A holder of a rare query word is an answer when nothing else is, and precedes hits merely beyond chance.
    expect(found([{ ...hit(3, 0.05), isEvident: true }])).toEqual([3])
    expect(found([{ ...hit(3, 0.05), isEvident: true }, hit(1, 0.055)])).toEqual([3])
    expect(found([{ ...hit(2, 0.02), isEvident: true }, hit(3, 0.02)])).toEqual([2])
  })

  it("without a confident branch, one hit beyond chance suffices, or a rare word", () => {
    const found = (words: ReadonlyArray<Hit>) =>
      ids(
        fuse(
          [
            { mode: "lexical", weight: 1, hits: words },
            { mode: "embedded", weight: 1, hits: [prominent(1, 0.1, -1), prominent(2, 0.1, -4)] }
          ],
          { k: 10, relevanceMin: 0.2, bestMin: 0.15 }
        )
      )
    expect(found([hit(1, 0.1)])).toEqual([1, 2])
    expect(found([{ ...hit(3, 0.05), isEvident: true }])).toEqual([1, 2, 3])
    const means = [prominent(1, 0.1, -1), prominent(2, 0.1, -4)]
    expect(isAnswered([hit(1, 0.1)], means)).toBe(true)
    expect(isAnswered([hit(2, 0.1)], means)).toBe(false)
    expect(isAnswered([hit(3, 0.14), hit(1, 0.04)], means)).toBe(false)
    expect(isAnswered([hit(3, 0.05)], means)).toBe(false)
    expect(isAnswered([{ ...hit(3, 0.05), isEvident: true }], means)).toBe(true)
  })

  it("combined lexical and semantic relevance ranks first when words are uncertain", () => {
    const found = (best: number, means: number, more: ReadonlyArray<Hit> = []) =>
      ids(
        fuse(
          [
            { mode: "lexical", weight: 0.2, hits: [hit(1, best), hit(2, 0.05), { ...hit(3, 0.02), isEvident: true }] },
            { mode: "embedded", weight: 0.2, hits: [prominent(4, means, 1), prominent(1, 0.01, -4)] },
            ...(more.length === 0 ? [] : [{ mode: "semantic", weight: 0.8, hits: more } as const])
          ],
          { k: 10, relevanceMin: 0.1, bestMin: 0.15 }
        )
      )
    // The first weak lexical hit is in both branches: by ranks it would precede the confident semantic hit.
    expect(found(0.14, 0.5)).toEqual([4, 1, 2])
    expect(found(0.14, 0.1)).toEqual([1, 4, 2, 3])
    // Confident lexical hits keep their ranks, and so do hits of an operator's model, because its scores are not
    // comparable.
    expect(found(0.26, 0.4)).toEqual([1, 2, 4])
    expect(found(0.14, 0.5, [hit(5, 0.2), hit(1, 0.19)])[0]).toBe(1)
  })

  it("the lexical threshold stays, the semantic one drops, the model decides", () => {
    const means = [prominent(1, 0.4, -0.2)]
    const options = { k: 10, relevanceMin: 0.2, bestMin: 0.15 }
    const alone = (prominence: number) => {
      const hits = [1, 2, 3, 4].map((id) => prominent(id, 0.4, prominence - id))
      return ids(fuse([{ mode: "embedded", weight: 1, hits }], options))
    }
    const beside = [
      { mode: "embedded", weight: 0.1, hits: [prominent(1, 0.4, -3)] },
      { mode: "semantic", weight: 1, hits: [hit(5, 0.5)] }
    ] as const
    expect(ids(fuse(beside, options))).toEqual([5, 1])
    expect([alone(0.5), alone(0.4)]).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3]
    ])
    expect(ids(fuse([{ mode: "embedded", weight: 1, hits: [1, 2, 3, 4].map((id) => hit(id, 0.4)) }], options))).toEqual(
      [1, 2, 3, 4]
    )
    const both = [
      { mode: "lexical", weight: 1, hits: [] },
      { mode: "embedded", weight: 1, hits: means }
    ] as const
    expect(isAnswered([], means)).toBe(false)
    expect(ids(fuse([...both, { mode: "semantic", weight: 1, hits: [hit(5, 0.5)] }], options))).toEqual([1, 5])
  })

  it("prominence alone never makes a hit relevant", () => {
    const aside: Hit = { ...prominent(2, 0, 3), isAside: true }
    expect(
      ids(
        fuse(
          [
            { mode: "lexical", weight: 1, hits: [] },
            { mode: "embedded", weight: 1, hits: [prominent(1, 0.4, 4), aside] }
          ],
          { k: 10, relevanceMin: 0, bestMin: 0 }
        )
      )
    ).toEqual([1])
  })

  it("a filtered search takes its fit from the unfiltered one", () => {
    const found = (isFitting: boolean) =>
      ids(
        fuse(
          [
            { mode: "lexical", weight: 1, hits: [hit(1, 0.2)] },
            { mode: "embedded", weight: 1, hits: [prominent(2, 0.1, -9)] }
          ],
          { k: 10, relevanceMin: 0.2, bestMin: 0.15, isFitting }
        )
      )
    expect(found(true)).toEqual([1])
    expect(found(false)).toEqual([1, 2])
  })

  it("a weak hit is measured against the unfiltered best where known", () => {
    const found = (best: number) =>
      ids(
        fuse([{ mode: "lexical", weight: 1, hits: [hit(1, 0.12), hit(2, 0.09)] }], {
          k: 10,
          relevanceMin: 0.2,
          bestMin: 0.3,
          bests: new Map([["lexical", best]])
        })
      )
    expect(found(0.5)).toEqual([1])
    expect(found(0.29)).toEqual([])
  })

  it("semantic similarity weighs less the more confident the lexical branch is", () => {
    const fused = (words: number, means: number) =>
      fuse(
        [
          { mode: "lexical", weight: 0.2, hits: [{ id: 1n, score: 1, relevance: words }] },
          { mode: "embedded", weight: 0.3, hits: [{ id: 2n, score: 1, relevance: means }] }
        ],
        { k: 9, relevanceMin: 0, bestMin: 0 }
      ).map(({ id, score }) => [Number(id), Number(score.toFixed(6))])
    expect(fused(0.1, 0.5)).toEqual([
      [2, 0.03],
      [1, 0.02]
    ])
    expect(fused(0.5, 0.5)).toEqual([
      [1, 0.02],
      [2, 0.012]
    ])
    expect(fused(0.8, 0.1)).toEqual([
      [1, 0.02],
      [2, 0.0015]
    ])
    const alone = fuse([{ mode: "embedded", weight: 0.3, hits: hits(1) }], { k: 9, relevanceMin: 0, bestMin: 0 })
    expect(alone[0]!.score).toBeCloseTo(0.03, 12)
  })

  it("equal scores of a branch share a rank; the next rank skips", () => {
    const equals = [1, 2, 3].map((id): Hit => ({ id: BigInt(id), score: id < 3 ? 1 : 0.5, relevance: 0.5 }))
    const fused = fuse([{ mode: "lexical", weight: 1, hits: equals }], { k: 10, relevanceMin: 0, bestMin: 0 })
    expect(fused.map(({ score }) => score)).toEqual([1 / 11, 1 / 11, 1 / 13])
  })

  it("of equal hits the one listed first ranks first", () => {
    expect(
      ids(
        fuse(
          [
            { mode: "lexical", weight: 1, hits: hits(1) },
            { mode: "semantic", weight: 1, hits: hits(2) }
          ],
          { k: 10, relevanceMin: 0, bestMin: 0 }
        )
      )
    ).toEqual([1, 2])
  })
})

describe("signals", () => {
  const now = 1_000 * 86_400_000
  const weights = {
    popularity: 0.05,
    freshness: 0.02,
    originDecay: 0.98,
    unproven: 0.9,
    evidence_margin: 0.3,
    prefers: []
  }
  const list = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ id: BigInt(at + 1), score: 1 / (10 + at), ranks: {} }))
  const known = (of: (id: bigint) => Partial<Signals>, count = 100) =>
    new Map(
      Array.from({ length: count }, (_, at) => [
        BigInt(at + 1),
        {
          id: BigInt(at + 1),
          origin: `https://s${at}`,
          payers: 0n,
          lastSeenAt: new Date(0),
          hasEvidence: true,
          price: 1,
          ...of(BigInt(at + 1))
        }
      ])
    )

  it("popularity moves a resource by a bounded share", () => {
    const [first, second] = [
      { id: 1n, score: 1, ranks: {} },
      { id: 2n, score: 0.9, ranks: {} }
    ]
    const richest = known((id) => (id === 2n ? { payers: 10n ** 12n, lastSeenAt: new Date(2 * now) } : {}))
    expect(ids(weigh([first, second], richest, weights, now))).toEqual([1, 2])
    expect(weigh([second], richest, weights, now)[0]!.score).toBeCloseTo(0.9 * 1.07, 12)
    // One payer, however often it pays, adds a tenth of the maximum popularity.
    expect(
      weigh(
        [first],
        known(() => ({ payers: 1n })),
        weights,
        now
      )[0]!.signals!.popularity
    ).toBeCloseTo(0.1, 2)
  })

  it("hits of one origin are spread, and none is lost", () => {
    const crowd = weigh(
      list(12),
      known((id) => (id <= 10n ? { origin: "https://crowd" } : {})),
      { ...weights, originDecay: 0.5 },
      now
    )
    expect(ids(crowd).slice(0, 3)).toEqual([1, 11, 12])
    expect(ids(crowd).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, at) => at + 1))
  })

  it("claims under a seller's origin take nothing from its listings with evidence", () => {
    const atOrigin = known((id) => ({ origin: "https://seller", hasEvidence: id > 3n }))
    const decayed = weigh(list(5), atOrigin, weights, now)
    const hitsOf = (id: number) => decayed.find((hit) => hit.id === BigInt(id))!.signals!.originHits
    expect([4, 5].map(hitsOf)).toEqual([0, 1])
  })

  it("claimed listings rank behind equally relevant ones with evidence, however often seen", () => {
    const equal = Array.from({ length: 6 }, (_, at) => ({ id: BigInt(at + 1), score: 1, ranks: {} }))
    const seen = known((id) => ({
      hasEvidence: id > 3n,
      origin: id > 3n ? "https://one" : `https://spam${id}`,
      ...(id > 3n ? {} : { payers: 1_000n, lastSeenAt: new Date(now) })
    }))
    expect(ids(weigh(equal, seen, weights, now))).toEqual([4, 5, 6, 1, 2, 3])
    // A hit better by more than that stays before it.
    expect(ids(weigh([{ ...equal[0]!, score: 1.2 }, equal[3]!], seen, weights, now))).toEqual([1, 4])
  })

  /** Claims 1 to 30 with a relevance of 1, and evidence 31 and 32 with less. */
  const flooded = (relevance: number, scores: readonly [number, number] = [0.01, 0.01]) => {
    const ranks = (relevance: number) => ({ lexical: { rank: 1, score: relevance, relevance } })
    return [
      ...list(30).map((one) => ({ ...one, ranks: ranks(1) })),
      ...scores.map((scoreAmongEvidence, at) => ({
        id: BigInt(31 + at),
        score: 0.001 / (1 + at),
        scoreAmongEvidence,
        ranks: ranks(relevance)
      }))
    ]
  }
  const vouched = known((id) => ({ hasEvidence: id > 30n, origin: `https://${id}` }))
  const placeOf = (id: number, hits: Parameters<typeof weigh>[0]) => ids(weigh(hits, vouched, weights, now)).indexOf(id)

  it("at most eight claims beyond the relevance margin precede evidence", () => {
    // No claim precedes an answer, however often the claims repeat the query.
    expect(placeOf(31, flooded(0.36))).toBe(0)
    expect(placeOf(31, flooded(0.34))).toBe(8)
    expect(placeOf(31, flooded(0.26))).toBe(8)
    expect(placeOf(31, flooded(0.24))).toBe(30)
    // A margin wider than the flood's lead applies to all of them.
    expect(ids(weigh(flooded(0.1), vouched, { ...weights, evidence_margin: 0.95 }, now))[0]).toBe(31)
  })

  it("young evidence precedes none that is older or established and answers", () => {
    const hit = (id: number, score: number, relevance: number) => ({
      id: BigInt(id),
      score,
      ranks: { lexical: { rank: 1, score, relevance } }
    })
    // 1 and 2 are young, 2 the older; 3 is established, and 4 is too but off the topic.
    const since = (id: bigint) => (id > 2n ? null : new Date(now - Number(id) * 1_000))
    const young = known((id) => ({ hasEvidence: true, origin: `https://${id}`, youngSince: since(id) }))
    const hits = [hit(1, 1, 1.7), hit(2, 0.9, 1.6), hit(3, 0.5, 0.4), hit(4, 0.1, 0.2)]
    expect(ids(weigh(hits, young, weights, now))).toEqual([3, 2, 1, 4])
    // Payers and recent sightings raise only established listings.
    const popular = known((id) => ({ payers: 1_000n, lastSeenAt: new Date(now), youngSince: since(id) }))
    expect(weigh(hits, popular, weights, now).map(({ signals }) => signals!.popularity > 0)).toEqual([
      true,
      false,
      false,
      true
    ])
  })

  it("a few young hits precede seniors that lack terms of the query", () => {
    const hit = (id: number, held: number) => ({
      id: BigInt(id),
      score: 1 / id,
      ranks: { lexical: { rank: id, score: 1, relevance: held, held } }
    })
    // 1 to 12 are young and the last is established; all of them answer.
    const young = known((id) => ({
      hasEvidence: true,
      origin: `https://${id}`,
      youngSince: new Date(now - Number(id))
    }))
    const get = (id: bigint) => (id === 13n ? known(() => ({ hasEvidence: true })).get(id) : young.get(id))
    const placeOfSenior = (held: number) =>
      ids(
        weigh([...Array.from({ length: 12 }, (_, at) => hit(at + 1, 1)), hit(13, held)], { get }, weights, now)
      ).indexOf(13)
    expect(placeOfSenior(0.85)).toBe(0)
    expect(placeOfSenior(0.6)).toBe(8)
  })

  it("young evidence under a seller's name takes no place or copy's rank from its older one", () => {
    const recipient = (id: bigint) => ({ origin: "https://one", payTos: ["GONE"], hasEvidence: true, sketch: "", id })
    const sellerOf = (id: bigint) => ({ ...recipient(id), youngSince: new Date(now - Number(id)) })
    // Hits 1 to 30 in this order; the greater the number, the older the evidence.
    const { hits } = spreadSellers(list(30), sellerOf)
    expect(ids(hits).slice(0, 3)).toEqual([1, 2, 3])
    // Each that is older than all before it keeps its place.
    expect(ids(hits).slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, at) => at + 1))
    const younger = (id: bigint) => ({ ...recipient(id), youngSince: new Date(now + Number(id)) })
    const others = (id: bigint) => (id > 5n ? { origin: `https://${id}`, payTos: [`G${id}`] } : younger(id))
    expect(ids(spreadSellers(list(30), others).hits).slice(0, 20)).not.toContain(4)
  })

  it("evidence behind a flood keeps the order of its scores", () => {
    expect(placeOf(32, flooded(0.26, [0.01, 0.02]))).toBe(8)
    expect(placeOf(32, flooded(0.26, [0.02, 0.01]))).toBe(9)
  })

  it("price breaks ties only when the query asks for cheap", () => {
    const [first, second] = [1n, 2n].map((id) => ({ id, score: 1, ranks: {} }))
    const priced = known((id) => ({ price: id === 1n ? 1 : 0.001 }))
    const wish = { ...weights, prefers: ["cheap"] as const }
    expect(ids(weigh([first!, second!], priced, wish, now))).toEqual([2, 1])
    expect(ids(weigh([first!, second!], priced, weights, now))).toEqual([1, 2])
    expect(ids(weigh([{ ...first!, score: 1.1 }, second!], priced, wish, now))).toEqual([1, 2])
  })

  it("a preferred kind decides between equals and nothing more", () => {
    const hits = [1n, 2n].map((id) => ({ id, score: 1, ranks: {} }))
    const kinds = known((id) => ({ type: id === 2n ? "mcp" : "http", price: id === 2n ? 1 : null }))
    for (const prefers of [["tool"], ["dollar"]] as const) {
      const wish = { ...weights, prefers }
      expect(ids(weigh(hits, kinds, weights, now))).toEqual([1, 2])
      expect(ids(weigh(hits, kinds, wish, now))).toEqual([2, 1])
      expect(ids(weigh([{ ...hits[0]!, score: 1.05 }, hits[1]!], kinds, wish, now))).toEqual([1, 2])
    }
  })

  it("hits far behind keep their order", () => {
    expect(
      ids(
        weigh(
          list(80),
          known(() => ({ payers: 5n })),
          weights,
          now
        )
      ).slice(60)
    ).toEqual(Array.from({ length: 20 }, (_, at) => at + 61))
  })
})

describe("a first page", () => {
  const hit = (at: number) => ({ id: BigInt(at), score: 1 / at, ranks: {} })
  const list = Array.from({ length: 60 }, (_, at) => hit(at + 1))

  it("copies of one sentence yield their places to sellers with evidence", () => {
    const sketch = sketchOf("Gives the forecast by the hour for one request as data")
    const sellerOf = (hasEvidence: boolean) => (id: bigint) => ({
      origin: `https://${id}`,
      payTos: [`G${id}`],
      hasEvidence,
      wordsAt: new Date(1_000 - Number(id)),
      sketch: id <= 30n ? sketch : ""
    })
    const first = (hasEvidence: boolean, hits: Parameters<typeof spreadSellers>[0] = list) =>
      ids(spreadSellers(hits, sellerOf(hasEvidence)).hits).slice(0, 20)
    expect(first(true).filter((id) => id <= 30)).toEqual([1, 2, 3])
    expect(first(false).filter((id) => id <= 30)).toEqual([28, 29, 30])
    // Behind a flood scores are about equal; the scores among evidence decide the order.
    const behind = list.map((one, at) => ({ ...one, score: 1, scoreAmongEvidence: 1 / (1 + at) }))
    expect(first(true, behind).filter((id) => id <= 30)).toEqual([1, 2, 3])
    // Sellers with the same sentence differ by the queried word: the newest of them contains it.
    for (const asked of [1n, 2n]) {
      const ranksOf = (id: bigint) => ({
        lexical: { rank: 40, score: 1, relevance: id === asked ? 0.9 : id > asked ? 0.6 : 0.5 }
      })
      const flooded = list.map((one) => ({ ...one, score: 1, ranks: ranksOf(one.id) }))
      expect(first(true, flooded)).toContain(Number(asked))
    }
  })

  it("a text copied by many sellers keeps three places, first sellers first", () => {
    const list = Array.from({ length: 40 }, (_, at) => hit(at < 30 ? 100 - at : at))
    const town = (id: bigint) => ["Riga", "Oslo", "Lima", "Bern"][Number(id) % 4]!
    const own = "abcdefghijklmnopqrstuvwxyz"
    const sellerOf = (id: bigint) => ({
      origin: `https://${id}`,
      payTos: [`G${id}`],
      sketch: sketchOf(
        id > 70n
          ? `Weather forecast ${id}, rain and wind by the hour in ${town(id)}`
          : [1, 2, 3, 4, 5].map((part) => own[Number(id) % 26]! + own[part]!).join(" ")
      )
    })
    const { hits } = spreadSellers(list, sellerOf)
    // The ranking starts 100, 99 and so on: copies of the texts of 71, 72 and 73.
    expect(hits.slice(0, 4).map(({ id }) => Number(id))).toEqual([71, 72, 73, 30])
    expect(new Set(hits.map(({ id }) => id)).size).toBe(40)
    // If all fit on the page, none is moved back, and equally relevant copies follow the first listed.
    const page = spreadSellers(list.slice(20), sellerOf).hits.map(({ id }) => Number(id))
    expect(page.slice(10)).toEqual([30, 31, 32, 33, 34, 35, 36, 37, 38, 39])
    expect(page.slice(0, 10).toSorted()).toEqual([71, 72, 73, 74, 75, 76, 77, 78, 79, 80])
    const texts = new Map(
      [1n, 2n, 3n].map((id) => [
        id,
        { origin: null, payTos: [`G${id}`], sketch: sketchOf("weather of any harbour by the hour"), hasEvidence: false }
      ])
    )
    const wordsAt = (id: bigint) => ({
      ...texts.get(id)!,
      wordsAt: new Date(id === 3n ? 0 : 1),
      hasEvidence: id === 2n
    })
    const hitsOf = (scores: ReadonlyArray<number>) => scores.map((score, at) => ({ id: BigInt(at + 1), score }))
    const idsOf = (scores: ReadonlyArray<number>) =>
      spreadSellers(hitsOf(scores), wordsAt).hits.map(({ id }) => Number(id))
    // Evidence first, then the age of the text; a far more relevant hit keeps its place.
    expect([idsOf([1, 0.99, 0.98]), idsOf([1, 0.5, 0.98])]).toEqual([
      [2, 3, 1],
      [3, 2, 1]
    ])
  })

  it("near-duplicate texts are detected regardless of numbers and word order", () => {
    const alike = (a: string, b: string) => areAlike(sketchOf(a), sketchOf(b))
    expect(alike("Weather forecast for Riga, 17", "forecast: weather for Riga 18")).toBe(true)
    expect(alike("Weather forecast for Riga", "Currency rates of any bank")).toBe(false)
    // Six of ten words of both, and five of ten.
    expect(alike("aa bb cc dd ee ff gg hh", "aa bb cc dd ee ff ii jj")).toBe(true)
    expect(alike("aa bb cc dd ee ff gg", "aa bb cc dd ee hh ii jj")).toBe(false)
    expect(alike("Gold price 17", "Gold price 17")).toBe(false)
    // Long texts by a part of their words.
    const long = (from: number) =>
      Array.from(
        { length: 80 },
        (_, at) => `w${"abcdefghij"[(from + at) % 10]}${String.fromCharCode(97 + Math.floor((from + at) / 10))}`
      ).join(" ")
    expect(sketchOf(long(0))).toHaveLength(32)
    expect(alike(long(0), long(4))).toBe(true)
    expect(alike(long(0), long(70))).toBe(false)
  })

  it("near-duplicates are grouped by their first text, like pairwise comparison", () => {
    const random = randomFrom(7_919)
    const word = () => String.fromCharCode(97 + random.below(6), 97 + random.below(6))
    for (let round = 0; round < 200; round++) {
      const lengths = [3, 6, 12, 60]
      const sketches = Array.from({ length: 40 }, () =>
        sketchOf(Array.from({ length: random.pick(lengths) }, word).join(" "))
      )
      const groups: Array<Array<number>> = []
      for (const [at, sketch] of sketches.entries()) {
        const group = groups.find(([first]) => areAlike(sketches[first!]!, sketch))
        if (group !== undefined) group.push(at)
        else if (sketch !== "" && groups.length < 9) groups.push([at])
      }
      expect(groupAlike(sketches, 9)).toEqual(groups)
    }
  })

  it("one seller has at most three hits per page; none is lost", () => {
    const sellerOf = (id: bigint) =>
      id <= 20n
        ? { origin: `https://s${id}`, payTos: ["GCROWD"] }
        : id <= 40n
          ? { origin: "https://crowd", payTos: [`G${id}`] }
          : { origin: `https://o${id}`, payTos: [`G${id}`] }
    const { hits, isCrowded } = spreadSellers(list, sellerOf)
    expect(ids(hits).slice(0, 8)).toEqual([1, 2, 3, 21, 22, 23, 41, 42])
    expect(ids(hits).slice(20, 23)).toEqual([4, 5, 6])
    expect(ids(hits).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, at) => at + 1))
    expect(isCrowded).toBe(false)
  })

  it("claims under a seller's origin or recipient take no place from its listings with evidence", () => {
    // Three claims each at the seller's origin and with its recipient are ranked first; 7 and 8 are the seller's.
    const sellerOf = (id: bigint) => ({
      origin: id <= 3n || id === 7n || id === 8n ? "https://seller" : `https://o${id}`,
      payTos: [id > 3n && id <= 8n ? "GSELLER" : `G${id}`],
      hasEvidence: id > 6n
    })
    expect(ids(spreadSellers(list, sellerOf).hits).slice(0, 8)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    // Claims are limited by everything that is there.
    const claimed = (id: bigint) => ({ ...sellerOf(id), hasEvidence: id === 1n })
    expect(ids(spreadSellers(list, claimed).hits).slice(0, 8)).toEqual([1, 2, 3, 4, 5, 6, 9, 10])
  })

  it("claims are one text by what was matched, however long the words before it are", () => {
    const own = (id: bigint) =>
      Array.from({ length: 120 }, (_, at) =>
        `q${String(id)}q${at}`.replace(/\d/g, (digit) => "abcdefghij"[Number(digit)]!)
      )
    const sellerOf = (id: bigint) => ({
      origin: `https://${id}`,
      payTos: [`G${id}`],
      claimed: hashedWords(`${own(id).join(" ")} ${id <= 30n ? "Tide tables and sea levels for any harbour" : ""}`)
    })
    const { hits } = spreadSellers(list, sellerOf, "tide tables and sea levels")
    expect(
      ids(hits)
        .slice(0, 20)
        .filter((id) => id <= 30)
    ).toEqual([1, 2, 3])
  })

  it("the result says when one seller's hits fill the list", () => {
    const crowd = () => ({ origin: "https://crowd", payTos: ["GCROWD"] })
    expect(spreadSellers(list, crowd).isCrowded).toBe(true)
    expect(spreadSellers(list.slice(0, 3), crowd).isCrowded).toBe(false)
  })
})

describe("a cursor's list", () => {
  it("a cursor's list round-trips and rejects every other input [S125]", () => {
    for (const ids of [
      [],
      [0n, 1n, 127n, 128n, 300n, 2n ** 62n],
      Array.from({ length: 1_000 }, (_, at) => BigInt(at * 97))
    ]) {
      for (const flags of Array.from({ length: 8 }, (_, at) => at)) {
        const [more, isAnswered, isPartial] = [1, 2, 4].map((flag) => (flags & flag) !== 0) as [
          boolean,
          boolean,
          boolean
        ]
        const position = { ids, shown: 40, more, isAnswered, isPartial }
        expect(decodePosition(encodePosition(position))).toEqual(Option.some(position))
      }
    }
    for (const other of ["", "1.8.AA", "x.1.AA", "1.1", "1.1.!!", "9999999.1.AA"])
      expect(decodePosition(other)).toEqual(Option.none())
  })
})
