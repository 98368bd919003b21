// What the settings mean by a vector, with its fingerprint: which generation this process is for. Where the model runs
// does not change what its vectors mean.
import { Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../kernel/payment/canonicalJson.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { SearchSettings } from "../catalog/contract.ts"
import type { Meaning } from "./Generations.ts"
import { VectorIndex } from "./VectorIndex.ts"

export class ConfiguredMeaning extends Context.Service<
  ConfiguredMeaning,
  { readonly meaning: Meaning; readonly fingerprint: string }
>()("tollkeeper/search-semantic/ConfiguredMeaning") {
  static readonly layer = Layer.effect(
    ConfiguredMeaning,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const { method } = yield* VectorIndex
      const { semantic } = yield* SearchSettings
      const meaning: Meaning = {
        provider: semantic.provider,
        url: semantic.url,
        model: semantic.model,
        revision: semantic.revision,
        dimension: semantic.dimension,
        pooling: semantic.pooling,
        queryPrefix: semantic.query_prefix,
        documentPrefix: semantic.document_prefix
      }
      const { url: _, ...telling } = meaning
      const digest = crypto.sha256(new TextEncoder().encode(canonicalJson({ ...telling, method })))
      return ConfiguredMeaning.of({ meaning, fingerprint: Hex.encode(digest) })
    })
  )
}
