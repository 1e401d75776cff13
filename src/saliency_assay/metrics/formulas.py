"""The formula of every metric in one line, as text; docs/metrics.md says what each letter is."""

FORMULAS = {
    "aopc": "AOPC_L = 1/(L + 1) Σ_{k=1..L} (f(x⁰) − f(x^k)), x^k without its k most (MoRF) or least (LeRF) relevant",
    "faithfulness": "F = Pearson's ρ(R_i, f(x) − f(x without pixel i)) over random pixels i",
    "criteria": (
        "N-Ord = mean_m max(R_m − y_b, 0); S-Ord = mean_m (min(R′_m, y_0) − y_b);"
        " TPN = ∫|R(π) − R(π reversed)| dk / (r y_0), TPS the same of R′ and r′"
    ),
    "deletion": "∫₀¹ f(x with the share p of its most salient pixels replaced by the fill) dp",
    "insertion": "∫₀¹ f(fill image with the share p of x's most salient pixels put in) dp",
    "road": "mean over shares p of f(x with its most (MoRF) or least (LeRF) relevant p imputed from its neighbours)",
    "sensitivity_n": "mean over n of Pearson's ρ(Σ_{i ∈ S} R_i, f(x) − f(x without S)) over random sets S of n pixels",
    "infidelity_square": "INFD = E_I (IᵀΦ − (f(x) − f(x − I)))², I the image inside a square",
    "infidelity_noisy_baseline": "INFD = E_I (IᵀΦ − (f(x) − f(x − I)))², I = x − z, z noise about black",
    "infidelity_subset": "INFD = E_I (IᵀΦ − (f(x) − f(x − I)))², I the image at a random subset of pixels",
    "infidelity_shap": "INFD = E_I (IᵀΦ − (f(x) − f(x − I)))², I the image at a subset drawn by the Shapley kernel",
    "infidelity_halves": "INFD = E_I (IᵀΦ − (f(x) − f(x − I)))², I the image inside its left or its right half",
    "sensitivity_max": "max over ‖y − x‖_∞ ≤ r of ‖Φ(f, y) − Φ(f, x)‖ / ‖Φ(f, x)‖ (undivided unless relative)",
    "pointing_game": "1 if the greatest value lies at most the tolerance from the object, else 0",
    "mask_attribution": "mass = Σ_M max(s, 0) / Σ max(s, 0); rank = |(the |M| pixels of greatest s) ∩ M| / |M|",
    "block_attribution": "Σ_M |Φ| / Σ |Φ|",
    "randomisation": "Spearman's ρ, or SSIM, of Φ(f, x) and Φ(f with new weights in some layers, x)",
    "mcs": "MCS = G_c(f_o, X_os) − G_c(f_s, X_os), G_c the mean of visual attribution on the object's pixels c",
    "idr": "IDR = share of images with g_c(f_s, x with the object) < g_c(f_s, x without it)",
    "iir": "IIR = share of images with |g_c(f, x + δ) − g_c(f, x)| / g_c(f, x) < t, where f(x + δ) ≈ f(x)",
    "tcav": "TCAV = |{x : ∂f_t(x)/∂a_l · v_l > 0}| / |X|, v_l the direction towards the concept at layer l",
}
