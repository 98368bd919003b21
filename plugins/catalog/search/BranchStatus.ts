// The state of a branch of search, for operators. `contract.ts` re-exports the types.

/** A generation of embeddings, as operators see it. */
export interface GenerationStatus {
  readonly provider: string
  readonly model: string
  readonly revision: string
  readonly dimension: number
  readonly pooling: string
  readonly normalization: string
  readonly status: "building" | "active" | "retired" | "failed"
  readonly created_at: string
  readonly activated_at: string | null
  readonly retired_at: string | null
}

export interface BranchStatus {
  readonly health: "ready" | "degraded" | "disabled"
  readonly detail?: string
  /** Resources in the index that answers. */
  readonly indexed: number
  readonly vectorSupport?: boolean
  readonly worker?: {
    readonly status: "idle" | "working" | "waiting"
    readonly queue_depth: number
    readonly dead_letters: number
  }
  /** Newest first; none in a branch without embeddings. */
  readonly generations: ReadonlyArray<GenerationStatus>
}
