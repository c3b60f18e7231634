// Linear regression with flat coefficients and a half-Cauchy scale.
data {
  int<lower=1> N;
  int<lower=1> D;
  matrix[N, D] X;
  vector[N] y;
}
parameters {
  vector[D] beta;
  real<lower=0> sigma;
}
transformed parameters {
  vector[N] fitted = X * beta;
}
model {
  sigma ~ cauchy(0, 2.5);
  y ~ normal(fitted, sigma);
}
generated quantities {
  array[N] real y_new = normal_rng(fitted, sigma);
  vector[N] log_lik;
  for (n in 1:N) log_lik[n] = normal_lpdf(y[n] | fitted[n], sigma);
}
