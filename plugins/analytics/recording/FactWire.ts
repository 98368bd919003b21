// The facts that analytics reads, decoded: a settlement was recorded, it ended, settled payments were counted for
// resources. An unreadable fact is None, and the reader continues without it. Pure.
import { Option } from "effect"
import type { Fact } from "../../../kernel/facts/Facts.ts"
import { isOfSettlement, readSettlementFact, type SettlementFact } from "../../../kernel/settlement/store/facts.ts"
import { readSold, type Sold, soldFact } from "../../catalog/contract.ts"

export type RecordedFact = SettlementFact | { readonly _tag: "Sold"; readonly data: Sold }

/** Whether analytics reads a fact of this type. */
export const concerns = (fact: Fact): boolean => fact.type === soldFact || isOfSettlement(fact)

export const readFact = (fact: Fact): Option.Option<RecordedFact> =>
  fact.type === soldFact ? Option.map(readSold(fact), (data) => ({ _tag: "Sold", data })) : readSettlementFact(fact)
