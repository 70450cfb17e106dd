"""Calls of SciPy and scikit-learn that dispatch by the array API standard, one a line: test_dispatch.py runs them on
arrays and on tensors. c converts an array; the arrays are those of `arrays`."""

from __future__ import annotations

from typing import Any

import numpy as np


def arrays() -> dict[str, Any]:
    """name -> array: the operands of CALLS."""
    r = np.random.RandomState(0)
    x = r.randn(40, 5)
    return {
        "X": x, "Y": (x[:, 0] > 0).astype(np.int64), "P": r.rand(40), "T": r.rand(40), "L": r.randint(0, 3, 40),
        "L2": r.randint(0, 3, 40), "A": abs(x) + 0.1, "COUNTS": np.array([16.0, 18, 16, 14, 12, 12]),
    }  # fmt: skip


IMPORTS = """
import scipy.special as sp, scipy.stats as st, scipy.signal as sg, scipy.cluster.vq as vq, scipy.fft as sf
import scipy.ndimage as nd, scipy.integrate as it
import sklearn.metrics as m, sklearn.preprocessing as pp, sklearn.decomposition as dc, sklearn.linear_model as lm
import sklearn.discriminant_analysis as da, sklearn.model_selection as ms, sklearn.metrics.pairwise as pw
"""
CALLS = """
sp.expit(c(X))
sp.logit(c(P))
sp.erf(c(X))
sp.gammaln(c(A))
sp.ndtr(c(X))
sp.xlogy(c(A), c(A))
sp.logsumexp(c(X), axis=1)
sp.softmax(c(X), axis=1)
sp.log_softmax(c(X), axis=1)
sp.entr(c(A))
sp.rel_entr(c(A), c(A))
sp.i0(c(X))
sp.betainc(c(A), c(A), c(P[:5]))
sp.digamma(c(A))
st.skew(c(X))
st.kurtosis(c(X))
st.moment(c(X), order=3)
st.pearsonr(c(P), c(T)).statistic
st.ttest_1samp(c(X), 0.0).statistic
st.ttest_ind(c(X), c(A)).statistic
st.variation(c(A))
st.gmean(c(A))
st.hmean(c(A))
st.entropy(c(A))
st.circmean(c(P))
st.describe(c(X)).mean
st.sem(c(X))
st.chisquare(c(COUNTS)).statistic
st.normaltest(c(X)).statistic
sg.detrend(c(X), axis=0)
sg.convolve(c(P), c(T[:5]), method='direct')
sg.fftconvolve(c(P), c(T[:5]))
sf.fft(c(P))
sf.rfft(c(P))
sf.ifft(c(P))
sf.fftshift(c(P))
sf.dct(c(P))
vq.whiten(c(X))
vq.vq(c(X), c(X[:3]))[0]
nd.gaussian_filter(c(X), 1.0)
it.trapezoid(c(P))
it.cumulative_trapezoid(c(P))
m.accuracy_score(c(L), c(L2))
m.mean_squared_error(c(P), c(T))
m.r2_score(c(P), c(T))
m.f1_score(c(Y), c((P > 0.5).astype(int)))
m.mean_absolute_error(c(P), c(T))
m.zero_one_loss(c(L), c(L2))
pw.cosine_similarity(c(X))
pw.euclidean_distances(c(X))
pw.rbf_kernel(c(X))
pp.MinMaxScaler().fit_transform(c(X))
pp.MaxAbsScaler().fit_transform(c(X))
pp.StandardScaler().fit_transform(c(X))
pp.Normalizer().fit_transform(c(X))
pp.KernelCenterer().fit_transform(c(X @ X.T))
pp.LabelEncoder().fit_transform(c(L))
abs(dc.PCA(2, svd_solver='full').fit_transform(c(X)))
da.LinearDiscriminantAnalysis().fit(c(X), c(Y)).predict(c(X))
lm.Ridge(solver='svd').fit(c(X), c(P)).predict(c(X))
ms.train_test_split(c(X), random_state=0)[0]
"""
