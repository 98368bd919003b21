// The configured embedding and index method, with the fingerprint of both: it selects this process's generation. Moving
// a model to another endpoint does not change the meaning of its vectors.
import { Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { SearchSettings } from "../../catalog/contract.ts"
import type { EmbeddingConfig } from "../Generations.ts"
import type { Method } from "../index/VectorIndex.ts"

export class ConfiguredEmbedding extends Context.Service<
  ConfiguredEmbedding,
  { readonly meaning: EmbeddingConfig; readonly method: Method; readonly fingerprint: string }
>()("tollkeeper/search-semantic/ConfiguredMeaning") {
  static readonly layer = (method: Method) =>
    Layer.effect(
      ConfiguredEmbedding,
      Effect.gen(function* () {
        const crypto = yield* Crypto
        const { semantic } = yield* SearchSettings
        const meaning: EmbeddingConfig = {
          provider: semantic.provider,
          url: semantic.url,
          model: semantic.model,
          revision: semantic.revision,
          dimension: semantic.dimension,
          pooling: semantic.pooling,
          queryPrefix: semantic.query_prefix,
          documentPrefix: semantic.document_prefix
        }
        const { url: _, ...reporting } = meaning
        const digest = crypto.sha256(new TextEncoder().encode(canonicalJson({ ...reporting, method })))
        return ConfiguredEmbedding.of({ meaning, method, fingerprint: Hex.encode(digest) })
      })
    )
}
